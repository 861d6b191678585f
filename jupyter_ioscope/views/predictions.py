"""What a change is expected to bring, in words; and how far that was from what came."""

from __future__ import annotations

import math

from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.units import ratio, ratio_range


def prediction_text(prediction: Prediction | None) -> str:
    """`× 1.80, between 1.50 and 2.20`, or `at most × 1.90`; empty without one."""
    if prediction is None or not math.isfinite(prediction.high):
        return ""
    if math.isnan(prediction.ratio):
        return f"at most {ratio(prediction.high)}"
    ends = ratio_range(prediction.low, prediction.high)
    return f"{ratio(prediction.ratio)} ({ends})"


def missed_text(
    prediction: Prediction | None, measured: float, low: float = math.inf, high: float = 0.0
) -> str:
    """How far the measured ratio lies from what was predicted; empty without a prediction. `low`
    and `high` are the ends of its own interval, where it has one."""
    told = prediction_text(prediction)
    if not told or prediction is None or not math.isfinite(measured) or measured <= 0:
        return ""
    bound = math.isnan(prediction.ratio)
    inside = (bound or prediction.low <= measured) and measured <= prediction.high
    where = "inside" if inside else "outside"
    # Both intervals leave room for the same ratio: nothing is shown to be wrong.
    open_ = not inside and low <= prediction.high and (bound or high >= prediction.low)
    if bound:
        rest = ", and its interval reaches into it" if open_ else ""
        return f"Predicted {told}: the measured ratio is {where} that bound{rest}."
    off = measured / prediction.ratio - 1
    side = "above" if off >= 0 else "below"
    return (
        f"Predicted {told}: the measured ratio is {abs(off):.0%} {side} it, {where} the interval"
        f"{', which its own overlaps' if open_ else ''}."
    )
