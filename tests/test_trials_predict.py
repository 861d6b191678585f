"""What toggles are expected to bring, from a profile alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.trials.predict import Predictor
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggle import chosen
from tests import work_values
from tests.trial_loaders import Sleeping


def draft_decode(decoding: int, other: int, **settings: Any) -> Prediction:
    """Of a loader whose fetches were seen in the decoder so often, and so often elsewhere."""
    profile = work_values.profile(
        (work_values.JPEG, decoding), (work_values.USER, other), step_ms=0.1, **settings
    )
    spec = spec_of(DataLoader(Sleeping(), num_workers=int(bool(settings.get("workers")))))
    found = Predictor(profile, spec).one(chosen("draft_decode")[0])
    assert found is not None
    return found


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("other", ["run_queue", "network"])
def test_a_bound_holds_where_fetches_spend_most_of_their_time_off_the_cpu(
    other: str, workers: int
) -> None:
    found = draft_decode(400, 600, states={"cpu": 0.3, other: 0.7}, workers=workers)
    # 40 % of the time in fetches is seen in the decoder: without it, the rest takes 60 %
    assert math.isnan(found.ratio)
    assert 1 / (1 - 0.40) < found.high < 1 / (1 - 0.50)


def test_a_bound_grows_with_what_is_seen_in_the_work() -> None:
    some, most = (
        draft_decode(times, 1000 - times, states={"cpu": 1.0}).high for times in (200, 700)
    )
    assert 1 / (1 - 0.2) < some < 1 / (1 - 0.3)
    assert 1 / (1 - 0.7) < most < 1 / (1 - 0.85)
