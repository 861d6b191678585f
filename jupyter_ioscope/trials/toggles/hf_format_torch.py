"""Rows of a Hugging Face dataset as torch tensors."""

from __future__ import annotations

from jupyter_ioscope.trials.toggles._hf_format import format_toggle

TOGGLE = format_toggle(
    "torch",
    title="Rows as torch tensors (with_format)",
    effect="Columns of numbers are read from the Arrow buffers as tensors, without a Python object "
    "for each number.",
    cost="Rows hold tensors instead of lists and numbers: whole numbers as int64, others as "
    "float32. The collate function must be able to use them, which is looked at first.",
)
