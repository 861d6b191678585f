"""What was tried on a loader, in the order in which it ended, as the page draws it."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.views.comparison import comparison_payload
from jupyter_ioscope.views.search import tuning_payload
from jupyter_ioscope.views.shapes import IComparison

Result = Comparison | Tuning

_SHOWN = 6  # the newest: a report in a notebook has its limit


def payload_of(result: Result) -> IComparison:
    """`IComparison` of payload.ts."""
    return tuning_payload(result) if isinstance(result, Tuning) else comparison_payload(result)


def payloads_of(results: Sequence[Result]) -> list[IComparison]:
    """Those that a report shows, the newest last."""
    return [payload_of(result) for result in results[-_SHOWN:]]
