"""Parts over time add up: stretches of a part to its time in the run, parts to the time there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jupyter_ioscope.diagnosis.over_time import (
    Rows,
    Stretches,
    consumer_over_time,
    spread,
    stretches_of,
    worker_over_time,
)
from jupyter_ioscope.diagnosis.waits import waits_of
from jupyter_ioscope.diagnosis.worker_waits import worker_lives
from jupyter_ioscope.model.diagnosis import ThreadWaits
from jupyter_ioscope.model.profile import Profile
from tests import builders
from tests.view_values import profile

STATES = {"cpu": 0.4, "disk": 0.4, "gil": 0.2}
PROFILES = {
    "two workers": lambda: profile(2, states=STATES),
    "no workers": lambda: profile(0, states=STATES),
    "three epochs": lambda: profile(2, epochs=3, batches=40, states=STATES),
    "records only": lambda: builders.profile(tier="in_process"),
    "workers before": lambda: builders.with_workers_before_profile(profile()),
    "one batch": lambda: profile(1, batches=1),
}


def rows_of(value: Profile, count: int = 20) -> list[tuple[ThreadWaits, Rows]]:
    grid, waits = stretches_of(value, count), waits_of(value)
    assert waits.consumer is not None
    found = [(waits.consumer, consumer_over_time(value, waits.consumer, grid))]
    lives = worker_lives(value)
    assert len(lives) == len(waits.workers)
    pairs = zip(waits.workers, lives, strict=True)
    return found + [(row, worker_over_time(row, own, grid)) for row, own in pairs]


@pytest.mark.parametrize("name", PROFILES)
def test_stretches_of_a_part_add_up_to_its_time_in_the_whole_run(name: str) -> None:
    for thread, parts in rows_of(PROFILES[name]()):
        for part in thread.parts:
            if part.time_ns > 0:
                assert sum(parts[part.name]) == pytest.approx(part.time_ns, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in PROFILES if name != "one batch"])
def test_parts_of_a_stretch_fit_into_it(name: str) -> None:
    value = PROFILES[name]()
    width = stretches_of(value, 20).width_ns
    for _, parts in rows_of(value):
        assert all(sum(row[i] for row in parts.values()) < 1.1 * width for i in range(20))
        assert all(time >= 0 for row in parts.values() for time in row)


def middle(parts: Rows, name: str) -> float:
    """Where in the run, 0 to 1, the time of a part lies on average."""
    row = parts[name]
    return sum(i * value for i, value in enumerate(row)) / sum(row) / (len(row) - 1)


def slow_disk_at_the_end() -> Profile:
    """Two workers whose second half is sampled on disk only, and whose first half runs only."""
    value = profile(2, states={"cpu": 0.5, "disk": 0.5}, batches=200)
    half = (value.start_ns + value.end_ns) // 2
    threads = tuple(
        builders.without(row, states=states_by_half(row.sample_ns, half))  # type: ignore[arg-type]
        if row.role == "worker"
        else row
        for row in value.threads
    )
    return builders.without(value, threads=threads)


def states_by_half(times: Sequence[int], half: int) -> tuple[int, ...]:
    return tuple(int(when >= half) for when in times)  # readings.STATES: running, then disk


def test_what_was_sampled_late_lies_late() -> None:
    (_, _), (_, parts), (_, _) = rows_of(slow_disk_at_the_end())
    assert middle(parts, "disk") > 0.65
    assert middle(parts, "cpu") < 0.35


def test_steps_lie_where_they_were_recorded() -> None:
    value = profile(2, step_ms=8.0)
    (_, parts), *_ = rows_of(value)
    grid = stretches_of(value, 20)
    exact = spread([(row.wait_end_ns, row.step_end_ns) for row in value.batches], grid)
    assert parts["step"] == pytest.approx(exact, abs=0.02 * grid.width_ns)


def test_intervals_are_divided_among_the_stretches_they_touch() -> None:
    grid = Stretches(100, 10.0, 4)
    assert spread([(105, 125)], grid) == [5, 10, 5, 0]
    assert spread([(100, 140)], grid) == [10, 10, 10, 10]
    assert spread([], grid) == [0, 0, 0, 0]
    assert (grid.at(0), grid.at(119), grid.at(10_000)) == (0, 1, 3)
