"""The sentence on top fits what was seen."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.headline import detail
from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from tests import builders


def test_a_cell_without_a_loader_is_told_so() -> None:
    diagnosis = diagnose(builders.empty_profile())
    assert diagnosis.headline == (
        "No DataLoader and no Hugging Face dataset was iterated in this cell."
    )
    assert "a loop of your own is not" in diagnosis.detail


def test_so_is_one_whose_loops_may_have_run_in_processes_that_it_started() -> None:
    empty = builders.empty_profile()
    uses = tuple(
        ProcessUse(pid, -1, empty.start_ns, empty.end_ns, *(0,) * 6, -1, -1, 8, 1024)
        for pid in (empty.pid, empty.pid + 1)
    )
    alone, two = (builders.without(empty, processes=rows) for rows in (uses[:1], uses))
    assert "process" not in diagnose(alone).headline
    assert "another process, whose loops are not recorded" in diagnose(two).headline


def test_a_loop_of_ones_own_is_told_what_its_threads_did() -> None:
    threads = [_thread(tid, "gil" if tid % 4 else "running") for tid in range(1, 9)]
    detail = diagnose(builders.empty_profile(threads=tuple(threads))).detail
    assert "8 threads of this process used" in detail
    assert "On average 6.0 of them stood in line for the interpreter lock (GIL)." in detail
    quiet = builders.empty_profile(threads=(_thread(1, "sleep"),))
    assert "GIL" not in diagnose(quiet).detail


def test_of_a_cell_shorter_than_a_beat_no_use_of_the_cores_is_told() -> None:
    thread = _thread(1, "running")
    long = builders.empty_profile(threads=(dataclasses.replace(thread, run_ns=10**9),))
    short = builders.without(long, end_ns=long.start_ns + 5_000_000)
    assert "used 1 of 4 cores" in diagnose(long).detail.replace("1.0", "1")
    assert "used" not in diagnose(short).detail


def _thread(tid: int, state: str) -> ThreadReadings:
    empty = builders.empty_profile()
    return ThreadReadings(
        pid=empty.pid,
        tid=tid,
        name="",
        role="other",
        worker=-1,
        first_ns=empty.start_ns,
        last_ns=empty.end_ns,
        run_ns=(empty.end_ns - empty.start_ns) // 10,
        run_queue_ns=0,
        major_faults=0,
        sample_ns=tuple(range(empty.start_ns, empty.start_ns + 10)),
        states=(STATES.index(state),) * 10,
    )


def test_a_late_loop_is_told_how_late() -> None:
    diagnosis = diagnose(builders.profile(2, fetch_ms=5, batches=40, before_ms=3000))
    assert diagnosis.headline.startswith("The loop took ")
    assert "but 3.0\u00a0s passed before it began" in diagnosis.headline
    assert diagnosis.findings[0].cost_s == pytest.approx(3, rel=0.01)
    assert 0.8 < diagnosis.findings[0].share < 1
    assert "without it the cell would take" in diagnosis.detail
    assert diagnosis.margin > 0
    inside = diagnose(builders.profile(2, fetch_ms=4, start_ms=3000))
    assert inside.findings[0].cause == diagnosis.findings[0].cause
    assert inside.detail.startswith("Without it the loop would take")


def test_a_loop_that_was_over_at_once_gets_no_verdict() -> None:
    diagnosis = diagnose(builders.profile(0, fetch_ms=2, step_ms=0.1, batches=10))
    assert "too short to say what limits it" in diagnosis.headline
    assert diagnosis.findings == ()


def test_other_programs_are_named_in_the_first_sentence() -> None:
    states = {"cpu": 0.3, "run_queue": 0.7}
    busy = builders.profile(0, states=states, cpus=2, others_cores=1.5, batches=150)
    assert diagnose(busy).headline.endswith("while other programs kept 1.5 of 2 cores busy.")


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
    assert diagnosis.headline == (
        "The loop waited for data 81\u00a0% of the time: "
        "workers are busy making samples on the CPU."
    )
    assert "The 2 workers spend 97 % of their time on the CPU" in diagnosis.detail
    assert "decode in In [4], line 12" in diagnosis.detail


def test_the_next_cause_is_named_with_its_distance() -> None:
    profile = builders.profile(2, states={"disk": 0.8, "cpu": 0.2}, batches=200)
    assert "Next cause, far behind: workers are busy" in diagnose(profile).detail


def test_a_next_cause_with_a_larger_share_is_not_called_behind() -> None:
    profile = builders.profile(2, states={"disk": 0.8, "cpu": 0.2}, batches=200)
    larger, smaller = diagnose(profile).findings[:2]
    text = detail(Facts(profile), (smaller, larger), True)
    assert text.endswith(f"Beside it, with a larger share: {larger.title[0].lower()}"
                         f"{larger.title[1:]}.")  # fmt: skip
    assert "behind" not in text


def test_a_healthy_loop_is_told_that_nothing_needs_fixing() -> None:
    text = diagnose(builders.profile(2, fetch_ms=2, step_ms=20)).headline
    assert text.startswith("Nothing to fix here: your own step is the limit")
    assert "%" in text


def test_the_second_sentence_does_not_say_the_first_again() -> None:
    diagnosis = diagnose(builders.profile(2, states={"cpu": 0.1, "disk": 0.9}, batches=160))
    title = diagnosis.findings[0].title
    assert title[1:] in diagnosis.headline
    assert title[1:] not in diagnosis.detail
    assert diagnosis.detail.startswith("Without it the loop would take ")


def test_a_loop_whose_step_is_the_limit_is_told_what_goes_without_the_step() -> None:
    diagnosis = diagnose(builders.profile(2, fetch_ms=2, step_ms=30))
    assert diagnosis.findings[0].cause == "not_loader_bound"
    assert diagnosis.detail.startswith("Without the step the loop would take ")


def test_a_cell_without_a_loader_has_no_full_evidence_of_batches() -> None:
    assert diagnose(builders.empty_profile()).tier.title == "no loader"
    assert diagnose(builders.profile(2)).tier.title == "full"
