"""Rows of a Hugging Face dataset as numpy arrays."""

from __future__ import annotations

from jupyter_ioscope.trials.toggles._hf_format import format_toggle

TOGGLE = format_toggle(
    "numpy",
    title="Rows as numpy arrays (with_format)",
    effect="Columns of numbers are read from the Arrow buffers as arrays, without a Python object "
    "for each number.",
    cost="Rows hold arrays instead of lists and numbers. The code after the dataset must be able "
    "to use them, which is looked at first.",
)
