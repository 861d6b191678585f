"""The arithmetic of the measuring scripts."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from tests.bench.measure import at_most_interval, cpu_s, ratio_interval
from tests.bench.table import judged, page


def test_a_known_ratio_lies_inside_its_interval() -> None:
    rng = random.Random(1)
    drifts = [rng.uniform(0.5, 2) for _ in range(60)]
    pairs = [(drift, 1.1 * drift * rng.gauss(1, 0.05)) for drift in drifts]
    result = ratio_interval(pairs)
    assert result.low < 1.1 < result.high
    assert result.high - result.low < 0.06  # the drift that both share is gone


def test_intervals_cover_the_truth_about_as_often_as_they_promise() -> None:
    rng = random.Random(2)
    covered = 0
    for trial in range(100):
        pairs = [(1.0, rng.lognormvariate(0.0, 0.1)) for _ in range(20)]
        low, high = ratio_interval(pairs, seed=trial)[1:]
        covered += low <= 1.0 <= high
    assert 88 <= covered <= 100


def test_no_event_in_twenty_tries_does_not_mean_never() -> None:
    # Wilson's upper limit for 0 of 20 is z^2 / (n + z^2)
    assert at_most_interval(0, 20).high == pytest.approx(1.96**2 / (20 + 1.96**2))
    assert at_most_interval(20, 20).low > 0.8


def test_cpu_of_waited_children_counts_and_sleep_does_not() -> None:
    before = cpu_s()
    subprocess.run([sys.executable, "-c", "sum(i * i for i in range(2_000_000))"], check=True)
    after_child = cpu_s()
    time.sleep(0.2)
    assert after_child - before > 0.02
    assert cpu_s() - after_child < 0.1


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (0.01, 0.0, 0.02, "met"),
        (0.01, 0.0, 0.04, "met, within doubt"),
        (0.04, 0.02, 0.05, "not met, within doubt"),
        (0.06, 0.04, 0.08, "not met"),
    ],
)
def test_a_goal_inside_the_interval_is_called_doubtful(
    value: float, low: float, high: float, word: str
) -> None:
    assert judged(value, low, high, goal=0.03) == word


def test_the_page_holds_only_what_was_measured_and_names_the_machine() -> None:
    measured = {"import_ms": 41.6, "bare_ms": 20.0, "loads": [], "machine": "a box of 3 cores"}
    text = page({"import_time": measured | {"quick": False, "date": "2030-01-02"}})
    assert "| `import ioscope` | 42 ms |  | at most 100 ms | met |" in text
    assert "a box of 3 cores; 2030-01-02." in text
    assert "Slow-down" not in text
