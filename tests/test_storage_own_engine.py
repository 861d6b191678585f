"""Requests that are timed one by one: what counts as their time."""

from __future__ import annotations

import itertools
import time

from jupyter_ioscope.storage import own_engine


class Told(own_engine.Line):
    """A line in which the first request stood all its time, the last hardly."""

    def __init__(self) -> None:
        super().__init__(-1)
        self._stood = iter((0, 10**12, 10**12, 10**12, 10**12, 10**12 + 10_000))

    def stood_ns(self) -> int:
        return next(self._stood)


def test_time_in_line_for_a_core_is_no_time_of_a_request() -> None:
    line = Told()
    took = own_engine.timed(lambda _: time.sleep(0.02), range(3), 10.0, line)
    assert took[0] == 0
    assert line.taken_ns >= 20_000_000
    assert took[1] >= 20_000_000
    assert took[2] >= 20_000_000  # so short a time in line is part of every request


def test_the_kernel_tells_how_long_a_thread_stood_in_line() -> None:
    with own_engine.line_for_a_core() as line:
        first = line.stood_ns()
        assert line.stood_ns() >= first >= 0


def test_drawn_offsets_are_blocks_of_the_file_and_come_again() -> None:
    found = list(itertools.islice(own_engine.drawn(64 * 4096, 4096, 1, 16), 48))
    assert len(set(found[:16])) == 16
    assert found[:16] == found[16:32] == found[32:]
    assert all(offset % 4096 == 0 and 0 <= offset < 64 * 4096 for offset in found)


def test_a_file_of_fewer_blocks_than_are_drawn_is_read_again() -> None:
    assert sorted(itertools.islice(own_engine.drawn(2 * 4096, 4096, 1, 16), 4)) == [
        0,
        0,
        4096,
        4096,
    ]
