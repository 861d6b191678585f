"""Stacks often at first, rarely later: both files are read, and a slow sample counts for more."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.capture import two_pace
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.pyspy import RawFrame, RawStack, find_py_spy, parse_raw
from jupyter_ioscope.capture.stacks import build

BUSY = """
def busy():
    while True:
        sum(range(1000))
busy()
"""


@pytest.fixture
def busy() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    yield process.pid
    process.kill()
    process.wait()


def executable() -> str:
    found = find_py_spy()
    assert found is not None
    return found


def tick_for(spies: two_pace.TwoPace, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        spies.tick()
        time.sleep(0.05)


def samples(path: str) -> int:
    return sum(stack.samples for stack in parse_raw(Path(path).read_text()))


@pytest.mark.timeout(240)
def test_the_second_pace_is_a_quarter_of_the_first(
    busy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_pace, "QUICK_S", 1.5)
    seen = []
    for attempt in range(4):  # py-spy starts late and misses samples on a busy machine
        folder = tmp_path / str(attempt)
        folder.mkdir()
        spies = two_pace.TwoPace(executable(), busy, str(folder), 80)
        tick_for(spies, 5.0)
        assert spies.stop() == ""
        quick, slow = spies.files
        assert (quick.weight, slow.weight) == (1, 4)
        seen.append((samples(quick.path), samples(slow.path)))
        # 1.5 s at 80 and 3.5 s at 20 a second: equal for equal times once they are weighted.
        if seen[-1][1] < seen[-1][0] < 4 * seen[-1][1]:
            return
    raise AssertionError(seen)


@pytest.mark.timeout(240)
def test_a_short_profile_has_one_file(busy: int, tmp_path: Path) -> None:
    spies = two_pace.TwoPace(executable(), busy, str(tmp_path), 25)
    tick_for(spies, 1.0)
    assert spies.stop() == ""
    (only,) = spies.files
    assert only.weight == 1
    assert samples(only.path) > 0


@pytest.mark.timeout(240)
def test_a_slow_pace_that_fails_leaves_the_quick_one_alone(
    busy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_pace, "QUICK_S", 0.3)
    spies = two_pace.TwoPace(executable(), busy, str(tmp_path), 40)
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o755)
    monkeypatch.setattr(spies, "_executable", str(failing))
    tick_for(spies, 2.0)
    assert spies.running()
    assert spies.stop() == ""
    assert [file.weight for file in spies.files] == [1]
    assert samples(spies.files[0].path) > 5


def test_weighted_samples_are_worth_less_than_as_many_equal_ones() -> None:
    frames = (RawFrame("<module>", "/x/train.py", 3), RawFrame("f", "/x/train.py", 9))
    raw = [RawStack(7, 7, "MainThread", frames, 100), RawStack(7, 7, "MainThread", frames, 25, 4)]
    made = build(
        raw,
        source="py-spy",
        rate_hz=24,
        pid=7,
        consumer_tid=7,
        workers={},
        cells=CellMap(),
    )
    assert made.samples() == 200
    # Kish: (sum of weights)^2 / sum of squared weights = 200^2 / (100 + 25 * 16) = 80.
    assert made.samples() * made.certainty == pytest.approx(80)
