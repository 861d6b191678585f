"""Rows of a Hugging Face dataset as Arrow tables."""

from __future__ import annotations

from jupyter_ioscope.trials.toggles._hf_format import format_toggle

TOGGLE = format_toggle(
    "arrow",
    title="Rows as Arrow tables (with_format)",
    effect="Rows and batches are slices of the Arrow table: nothing is copied or converted.",
    cost="The loop gets a pyarrow.Table instead of a dict of lists, and must be able to use it. "
    "torch's own collate function cannot.",
)
