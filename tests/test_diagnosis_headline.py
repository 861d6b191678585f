"""The sentence on top fits what was seen."""

from __future__ import annotations

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from tests import builders


def test_a_cell_without_a_loader_is_told_so() -> None:
    assert diagnose(builders.empty_profile()).headline == "No loader was iterated in this cell."


def test_a_loader_that_gave_nothing_is_told_with_what_ended_the_cell() -> None:
    profile = builders.without(builders.profile(), batches=(), fetches=(), ended_by="ValueError")
    diagnosis = diagnose(profile)
    assert diagnosis.headline == "The loader gave no batch."
    assert "ValueError" in diagnosis.detail


@pytest.mark.parametrize(("count", "text"), [(1, "Only one batch"), (5, "Only 5 batches")])
def test_few_batches_are_too_few(count: int, text: str) -> None:
    assert diagnose(builders.profile(2, batches=count)).headline.startswith(text)


def test_a_loop_that_waits_is_told_how_much_and_for_what() -> None:
    diagnosis = diagnose(builders.profile(2, batches=150))
    assert diagnosis.headline == "The loop waited for data 81\u00a0% of the time."
    assert "The 2 workers spend 97 % of their time on the CPU" in diagnosis.detail
    assert "decode in In [4], line 12" in diagnosis.detail


def test_the_next_cause_is_named_with_its_distance() -> None:
    profile = builders.profile(2, states={"disk": 0.8, "cpu": 0.2}, batches=200)
    assert "Next cause, far behind: workers are busy" in diagnose(profile).detail


def test_a_healthy_loop_is_told_that_nothing_needs_fixing() -> None:
    text = diagnose(builders.profile(2, fetch_ms=2, step_ms=20)).headline
    assert text.startswith("Nothing to fix here: your own step is the limit")
    assert "%" in text
