"""Batches that are read by the clock only, and the CPU that falls on them."""

from __future__ import annotations

import random

import pytest

from jupyter_ioscope.capture import recorder as recording
from jupyter_ioscope.capture.batch_rows import SHORT_LIGHT, SHORT_NS
from jupyter_ioscope.capture.recorder import Recorder
from jupyter_ioscope.model.records import Batch

LONG_NS = 10 * SHORT_NS
Part = tuple[int, int]  # of a wait or a step: its time and its CPU time


class Loop:
    """A loop on a clock of its own, that knows what each batch really used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns, self.cpu_ns, self.reads, self.thread = 1, 1, 0, 7
        monkeypatch.setattr(recording, "_clock_ns", lambda: self.now_ns)
        monkeypatch.setattr(recording, "_thread_ns", self._thread_ns)
        monkeypatch.setattr(recording, "_thread_id", lambda: self.thread)
        self.recorder = Recorder("")
        self.epoch = self.recorder.open_epoch(0, 0)
        self.true: list[tuple[Part, Part]] = []

    def _thread_ns(self) -> int:
        self.reads += 1
        return self.cpu_ns

    def _pass(self, part: Part) -> None:
        self.now_ns += part[0]
        self.cpu_ns += part[1]

    def batch(self, wait: Part, step: Part) -> None:
        self.recorder.wait_begins(self.epoch)
        self._pass(wait)
        self.recorder.wait_ends(self.epoch, 4, 0, len(self.true))
        self._pass(step)
        self.true.append((wait, step))

    def batches(self) -> tuple[Batch, ...]:
        self.recorder.wait_begins(self.epoch)  # which finds the loader empty
        return self.recorder.batches()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


def cpu_ns(batches: tuple[Batch, ...] | list[Batch]) -> int:
    return sum(row.wait_cpu_ns + row.step_cpu_ns for row in batches)


def test_of_eight_short_batches_one_is_read_in_full_and_sums_stay_exact(loop: Loop) -> None:
    rng, blocks = random.Random(0), 20
    for _ in range(blocks * (SHORT_LIGHT + 1) + 1):
        wait_ns, step_ns = rng.randrange(1_000, 90_000), rng.randrange(1_000, 90_000)
        loop.batch((wait_ns, wait_ns * 2 // 5), (step_ns, rng.randrange(step_ns // 2, step_ns)))
    rows = loop.batches()
    assert loop.reads <= 3 * (blocks + 1)
    until_full = loop.true[: blocks * (SHORT_LIGHT + 1)]
    true_ns = sum(wait[1] + step[1] for wait, step in until_full)
    assert cpu_ns(rows[: len(until_full)]) == pytest.approx(true_ns, abs=2 * len(rows))
    assert all(row.wait_cpu_ns <= row.wait_ns and row.step_cpu_ns <= row.step_ns for row in rows)
    times = [(row.wait_ns, row.step_ns) for row in rows]
    assert times == [(wait[0], step[0]) for wait, step in loop.true]


def test_waits_and_steps_get_cpu_as_in_the_batch_before_that_was_read(loop: Loop) -> None:
    for _ in range(3 * (SHORT_LIGHT + 1)):
        loop.batch((40_000, 4_000), (10_000, 9_000))
    for row in loop.batches():
        assert row.wait_cpu_ns == pytest.approx(4_000, abs=2)
        assert row.step_cpu_ns == pytest.approx(9_000, abs=2)


def test_long_batches_are_all_read_in_full(loop: Loop) -> None:
    rng = random.Random(1)
    for _ in range(30):
        used = rng.randrange(LONG_NS)
        loop.batch((LONG_NS, LONG_NS - used), (LONG_NS, used))
    rows = loop.batches()
    assert [(row.wait_cpu_ns, row.step_cpu_ns) for row in rows] == [
        (wait[1], step[1]) for wait, step in loop.true
    ]


def test_the_batch_after_a_long_one_among_short_ones_is_read_in_full(loop: Loop) -> None:
    for number in range(12):
        loop.batch((LONG_NS, 3_000) if number == 4 else (20_000, 2_000), (20_000, 20_000))
    rows = loop.batches()
    assert (rows[5].wait_cpu_ns, rows[5].step_cpu_ns) == (2_000, 20_000)
    true_ns = sum(wait[1] + step[1] for wait, step in loop.true[:5])
    assert cpu_ns(rows[:5]) == pytest.approx(true_ns, abs=10), "what all used is known"


def test_a_loop_that_changes_its_thread_gets_no_other_threads_cpu(loop: Loop) -> None:
    for number in range(3 * (SHORT_LIGHT + 1)):
        if number == 4:
            loop.thread, loop.cpu_ns = 8, 10**12
        loop.batch((20_000, 2_000), (20_000, 10_000))
    rows = loop.batches()[: SHORT_LIGHT + 1]
    assert cpu_ns(rows) == pytest.approx(12_000 * len(rows), rel=0.1)
