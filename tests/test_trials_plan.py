"""How long trials are: from the rates that pilots showed."""

from __future__ import annotations

import math

from jupyter_ioscope.trials.plan import Pilot, read_once
from jupyter_ioscope.trials.trial import Plan


def pilot(steady_batches: float) -> Pilot:
    return Pilot(1000.0, 32.0, 0.1, 10.0, steady_batches)


def test_cold_trials_read_nothing_twice() -> None:
    plan = Plan("steady", seed=1, discard=4, samples=9_000)
    assert read_once(plan, (pilot(100), pilot(50))).samples == 1_600
    assert read_once(plan._replace(samples=700), (pilot(100), pilot(50))).samples == 700
    assert read_once(plan, (pilot(math.inf), pilot(math.inf))) == plan
