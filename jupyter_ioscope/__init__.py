"""ioscope: why a training loop waits for data, and the proof of the fix, in the notebook."""

from __future__ import annotations

__version__ = "0.1.0"
