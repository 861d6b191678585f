"""How long trials are: from the rates that pilots showed."""

from __future__ import annotations

import math
from dataclasses import replace

from jupyter_ioscope.trials.plan import Pilot, read_before, read_once
from jupyter_ioscope.trials.trial import Plan


def pilot(steady_batches: float) -> Pilot:
    return Pilot(1000.0, 32.0, 0.1, 10.0, steady_batches)


def test_cold_trials_read_nothing_twice() -> None:
    plan = Plan("steady", seed=1, discard=4, samples=9_000)
    assert read_once(plan, (pilot(100), pilot(50))).samples == 1_600
    assert read_once(plan._replace(samples=700), (pilot(100), pilot(50))).samples == 700
    assert read_once(plan, (pilot(math.inf), pilot(math.inf))) == plan


def test_a_pilot_that_read_what_trials_will_read_is_their_untimed_pass() -> None:
    plan = Plan("steady", seed=1, discard=4, samples=900)
    little, some, much = (replace(pilot(math.inf), timed_samples=n) for n in (320, 640, 1_000))
    assert read_before(plan, (some, much), 64, each=False) == plan
    cut = read_before(plan, (some, much), 64, each=True)
    assert cut is not None
    assert cut.samples == 640
    assert read_before(plan, (some, some), 96, each=False) == plan._replace(samples=576)
    assert read_before(plan, (little, some), 64, each=True) is None


def test_a_pilot_that_came_to_an_end_of_an_epoch_has_read_all_of_it() -> None:
    plan = Plan("epochs", seed=1, discard=4, epochs=3)
    part, whole = pilot(100), replace(pilot(100), whole_epoch=True)
    assert read_before(plan, (part, part), 64, each=False) is None
    assert read_before(plan, (part, whole), 64, each=False) == plan
    assert read_before(plan, (part, whole), 64, each=True) is None
