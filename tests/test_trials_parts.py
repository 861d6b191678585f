"""Several toggles: each one's part is told, and what they make together."""

from __future__ import annotations

import threading

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.trials.parts import compare_parts
from jupyter_ioscope.trials.progress import Progress
from tests.trial_loaders import Sleeping

pytestmark = [pytest.mark.timeout(400), pytest.mark.second]


@pytest.mark.usefixtures("short_trials")
def test_each_toggle_alone_and_all_together_with_wider_intervals() -> None:
    steps: list[Progress] = []
    loader = DataLoader(Sleeping(2000, wait_s=0.02), batch_size=2, num_workers=1)
    found = compare_parts(
        loader, ["workers=4", "prefetch=4"], budget_s=18, on_progress=steps.append
    )
    assert [row.arms[1].toggles for row in found.alone] == [("workers=4",), ("prefetch=4",)]
    assert found.together is not None
    assert found.together.arms[1].toggles == ("workers=4", "prefetch=4")
    # samples only wait, so four workers make four times as many, and more ahead makes no more
    ahead = found.alone[1].ratio
    assert found.alone[0].ratio > 1.3 * ahead
    assert found.together.ratio > 1.3 * ahead
    assert found.together.confidence == pytest.approx(1 - 0.05 / 3)
    assert "all together" in str(found)
    assert steps[-1].text.startswith("3 of 3")
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)


@pytest.mark.usefixtures("short_trials")
def test_a_toggle_that_does_not_apply_is_told_and_left_out() -> None:
    loader = DataLoader(Sleeping(400), batch_size=2, num_workers=1)
    found = compare_parts(loader, ["workers=3", "in_order", "draft_decode", "prefetch"], budget_s=5)
    reasons = dict(found.failed)
    assert set(reasons) == {"in_order", "draft_decode"}
    assert "num_workers is 1" in reasons["in_order"]
    assert reasons["draft_decode"]
    assert [row.arms[1].toggles for row in found.alone] == [("workers=3",), ("prefetch",)]
    assert found.together is not None
    assert found.together.arms[1].toggles == ("workers=3", "prefetch")


def test_one_toggle_is_no_question_of_parts() -> None:
    with pytest.raises(InputError, match="two toggles"):
        compare_parts(DataLoader(Sleeping(8)), ["prefetch"])


def test_nothing_that_applies_is_an_error_with_all_reasons() -> None:
    loader = DataLoader(Sleeping(40), batch_size=4)
    with pytest.raises(TrialError, match=r"prefetch: .*num_workers is 0.*persistent_workers"):
        compare_parts(loader, ["prefetch", "persistent_workers"], budget_s=4)


def test_cancelled_before_it_begins_it_has_no_parts() -> None:
    cancel = threading.Event()
    cancel.set()
    loader = DataLoader(Sleeping(40), batch_size=4, num_workers=1)
    found = compare_parts(loader, ["prefetch", "persistent_workers"], budget_s=4, cancel=cancel)
    assert found.cancelled
    assert found.alone == ()
