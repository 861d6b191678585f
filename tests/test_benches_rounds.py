"""Rounds of a bench: pairs, verdicts, arms that fail, hang or die; and what the result says."""

from __future__ import annotations

import functools
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jupyter_ioscope.benches import _rounds
from jupyter_ioscope.benches._bench import Arm, Bench, Missing, Pass, Prepared
from jupyter_ioscope.benches._forks import ArmError, forked, short
from jupyter_ioscope.benches._result import headline, result
from jupyter_ioscope.benches._rounds import Rounds
from jupyter_ioscope.benches._timing import timed
from jupyter_ioscope.model import files
from jupyter_ioscope.model.bench import BenchArm, BenchResult
from jupyter_ioscope.views.benches import bench_text
from tests.leftovers import children, zombies

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def one_pass_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rounds, "_SHORTEST_S", 0.0)
    monkeypatch.setattr(_rounds, "_LONGEST_S", 0.0)


def clocked(seconds: float, **own: float) -> Callable[[], Pass]:
    """An arm whose passes say themselves how long they took."""

    def once() -> Mapping[str, float]:
        return {"seconds": seconds, **own}

    return lambda: once


def arm(name: str, seconds: float, **changes: Any) -> Arm:
    return Arm(name, clocked(seconds), 10, **changes)


def ran(*arms: Arm, own_process: bool = False, budget_s: float = 30.0) -> Rounds:
    rounds = Rounds(arms, lambda text: None, own_process, time.monotonic() + budget_s)
    rounds.run()
    return rounds


def broken() -> Pass:
    raise ValueError("this one cannot")


def killed() -> Pass:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def bench_of(rounds: Rounds, *missing: Missing) -> BenchResult:
    bench = Bench("x", "X", "anything", "thing", lambda target, folder: prepared)
    prepared = Prepared("target", rounds.arms, missing, code=lambda one: f"use {one.name}")
    return result(bench, prepared, rounds, 1.0)


def test_an_arm_is_compared_with_the_first_of_its_group() -> None:
    rounds = ran(arm("slow", 0.4), arm("fast", 0.1), arm("other", 0.1, group="b"))
    found = bench_of(rounds)
    fast = found.arm("fast")
    assert fast is not None
    assert (fast.against, fast.verdict) == ("slow", "faster")
    assert fast.ratio == pytest.approx(4.0)
    assert fast.seconds_per_item == pytest.approx(0.01)
    assert [row.verdict for row in found.arms if row.name != "fast"] == ["reference", "reference"]


def test_equal_arms_are_the_same_and_four_rounds_are_enough() -> None:
    rounds = ran(arm("a", 0.2), arm("b", 0.2))
    found = bench_of(rounds).arm("b")
    assert found is not None
    assert (found.verdict, found.trials) == ("same", 4)


def test_a_faster_arm_that_differs_does_not_win() -> None:
    rounds = ran(
        arm("standard", 0.4),
        arm("right", 0.2, look=lambda: []),
        arm("wrong", 0.1, look=lambda: ["1 becomes 2"]),
    )
    found = bench_of(rounds)
    assert found.code == "use right"
    assert "right is ×\u00a02.00 as fast as standard, with the same outcome" in found.headline
    assert "wrong (×\u00a04.00) gives something else" in found.headline
    assert found.arms[2].differences == ("1 becomes 2",)


@pytest.mark.parametrize("bad", [broken, killed], ids=["raises", "dies"])
def test_an_arm_that_fails_hides_no_other(bad: Callable[[], Pass]) -> None:
    rounds = ran(arm("a", 0.2), Arm("bad", bad, 1), arm("b", 0.1), own_process=True)
    found = bench_of(rounds)
    row = found.arm("bad")
    assert row is not None
    assert (row.verdict, row.correct) == ("failed", "fails")
    assert ("this one cannot" in row.differences[0]) is (bad is broken)
    assert ("SIGKILL" in row.differences[0]) is (bad is killed)
    other = found.arm("b")
    assert other is not None
    assert other.verdict == "faster"


def test_a_reference_that_fails_is_replaced() -> None:
    found = bench_of(ran(Arm("first", broken, 1), arm("second", 0.2), arm("third", 0.1)))
    third = found.arm("third")
    assert third is not None
    assert (third.against, third.verdict) == ("second", "faster")


def test_what_takes_too_much_of_the_budget_to_be_tried_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow() -> Pass:
        time.sleep(30)
        raise AssertionError

    monkeypatch.setattr(_rounds, "_TRY_S", 0.3)
    before = children() | zombies()
    began = time.monotonic()
    rounds = ran(arm("a", 0.2), arm("b", 0.1), Arm("c", slow, 1), own_process=True, budget_s=0.0)
    assert time.monotonic() - began < 25
    found = bench_of(rounds)
    assert [row.verdict for row in found.arms] == ["reference", "faster", "not tried"]
    assert [row.trials for row in found.arms] == [4, 4, 0]
    text = bench_text(found).replace("\u00a0", " ")
    assert "c was not tried: 0 s were too short for it" in text
    assert not rounds.failed
    assert children() | zombies() <= before


def test_how_long_it_still_takes_is_said_from_the_pilots_on() -> None:
    said: list[tuple[str, float]] = []
    arms = (arm("a", 0.2), arm("b", 0.1))
    rounds = Rounds(arms, lambda text: said.append((text, rounds.to_go_s)), False, math.inf)
    rounds.run()
    assert [to_go_s for text, to_go_s in said if text.startswith("pilot")] == [-1.0, -1.0]
    in_rounds = [(text, to_go_s) for text, to_go_s in said if text.startswith("round")]
    assert len(in_rounds) == 8
    assert all("s to go: " in text and to_go_s >= 0 for text, to_go_s in in_rounds)


def test_a_fork_that_hangs_is_ended() -> None:
    def hang() -> dict[str, Any]:
        time.sleep(60)
        return {}

    before = children() | zombies()
    with pytest.raises(ArmError, match="no result in time"):
        forked(hang, 0.2, lambda: None)
    assert children() | zombies() <= before


def test_memory_is_what_the_passes_took() -> None:
    def open_() -> Pass:
        def once() -> None:
            bytearray(48 << 20)

        return once

    told = forked(functools.partial(timed, Arm("big", open_, 1), 0.0, True), 30, lambda: None)
    if told["memory"]:  # 0 where the kernel does not let a process reset its peak
        assert 40 << 20 < told["memory"] < 80 << 20


def test_passes_whose_cache_could_not_be_emptied_do_not_count() -> None:
    told = ["still there", "", ""]
    made = timed(arm("cold", 0.1, before=lambda: told.pop(0) if told else ""), 0.0, False)
    assert made["seconds"] == pytest.approx(0.01)
    with pytest.raises(RuntimeError, match="never gone"):
        timed(arm("cold", 0.1, before=lambda: "never gone"), 0.0, False)


def test_own_numbers_reach_the_tables() -> None:
    rounds = ran(Arm("a", clocked(0.1, p99=0.5), 1))
    assert rounds.found()[("", "a")].own["p99"] == 0.5


def test_what_is_missing_is_a_row_with_the_install_line_and_all_survives_json() -> None:
    found = bench_of(ran(arm("a", 0.1)), Missing("b", "not installed: pip install b"))
    row = found.arm("b")
    assert row is not None
    assert (row.verdict, row.differences) == ("not installed", ("not installed: pip install b",))
    back = files.decoded(BenchResult, files.encoded(found), "bench")
    assert back.headline == found.headline
    assert math.isnan(back.arms[1].ratio)


def test_nothing_that_ran_is_said_so() -> None:
    assert headline(bench_of(ran(Arm("a", broken, 1))).arms) == "nothing could be timed"
    rows: list[BenchArm] = []
    assert headline(rows) == ""


def test_an_exception_that_cannot_be_shown_is_still_named() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def body() -> dict[str, Any]:
        raise Odd

    assert short(Odd()) == "Odd: (its text cannot be shown)"
    with pytest.raises(ArmError, match="Odd"):
        forked(body, 30.0, lambda: None)
