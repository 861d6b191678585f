"""What was tried on a loader, in the order in which it ended, as the page draws it."""

from __future__ import annotations

from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.views.comparison import comparison_payload
from jupyter_ioscope.views.shapes import IComparison
from jupyter_ioscope.views.tuning import tuning_payload


def payload_of(result: Comparison | Tuning) -> IComparison:
    """`IComparison` of payload.ts."""
    return tuning_payload(result) if isinstance(result, Tuning) else comparison_payload(result)
