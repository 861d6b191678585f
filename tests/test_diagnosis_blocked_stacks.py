"""Shares, errors and lengths of waits are those of the waits that were put in."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_ioscope.diagnosis.blocked_stacks import (
    blocked_in,
    blocked_states,
    fetching_role,
    stacks_at,
)
from jupyter_ioscope.diagnosis.blocked_waits import chance_of, length_for
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.files import load, save
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, Frame
from tests import builders
from tests.io_causes.slow_mount import why_not
from tests.known_split import Split, iterate, slow_file

MS = 1_000_000
FRAMES = (
    Frame("__getitem__", "/home/me/data.py", 10),
    Frame("rows", "/home/me/data.py", 20),
    Frame("labels", "/home/me/data.py", 30),
    Frame("read", "/usr/lib/python3.11/gzip.py", 300),
    Frame("[read]", "", 0),
    Frame("[page fault]", "", 0),
)
Frames = tuple[int, ...]
ROWS: Frames = (0, 1, 4)
LABELS: Frames = (0, 2, 3, 4)
FAULT: Frames = (0, 2, 5)


def with_waits(
    profile: Profile,
    waits: Mapping[tuple[str, Frames], tuple[float, float]],
    rate_hz: float = 20.0,
    seed: int = 0,
) -> Profile:
    """`profile` with stacks taken from worker threads that go round a cycle of waits and work.

    `waits` is (state, frames) -> (length in ms, ms of work after it).
    """
    rng = random.Random(seed)
    found: dict[tuple[int, str, Frames], list[tuple[int, int]]] = {}
    for info in profile.workers:
        reading = next(r for r in profile.threads if r.tid == info.tid)
        instants = iter(instants_between(reading.first_ns, reading.last_ns, rate_hz, rng))
        now, turn, instant = reading.first_ns, 1, next(instants, None)
        while instant is not None:
            for (state, frames), (wait_ms, work_ms) in waits.items():
                turn += 1
                until = now + int(wait_ms * MS)
                while instant is not None and instant < until:
                    if instant >= now:
                        key = (info.pid, state, frames)
                        found.setdefault(key, []).append((instant, turn))
                    instant = next(instants, None)
                now = until + int(work_ms * MS)
    numbers = {info.pid: info.worker for info in profile.workers}
    stacks = tuple(
        BlockedStack(
            "worker", numbers[pid], pid, STATES.index(state), frames,
            tuple(when for when, _ in rows), tuple(turn for _, turn in rows),
        )
        for (pid, state, frames), rows in found.items()
    )  # fmt: skip
    return builders.without(profile, blocked=BlockedStacks(rate_hz, FRAMES, stacks))


def instants_between(first: int, last: int, rate_hz: float, rng: random.Random) -> list[int]:
    """One at random in each period, as the sampler draws them."""
    period = int(1e9 / rate_hz)
    return [at + int(rng.random() * period) for at in range(first, last - period, period)]


def disk_profile(**states: float) -> Profile:
    mix = states or {"cpu": 0.3, "disk": 0.7}
    return builders.profile(workers=2, states=mix, fetch_ms=50.0, batches=400, step_ms=0.1)


def test_a_states_time_is_divided_as_its_waits_were() -> None:
    waits = {("disk", ROWS): (5.0, 2.0), ("disk", LABELS): (2.0, 1.0)}
    first, second = blocked_in(with_waits(disk_profile(), waits), "worker", ("disk",))
    assert (first.name, second.name) == ("rows", "labels")
    assert abs(first.fraction - 5 / 7) < 3 * first.error < 0.2
    assert first.fraction + second.fraction == pytest.approx(1.0)
    assert (first.line, first.call, first.below) == (20, "read", "")
    assert (second.line, second.below) == (30, "read")
    assert first.where == "rows in /home/me/data.py, line 20"


def test_errors_are_as_large_as_the_estimates_scatter() -> None:
    waits = {("disk", ROWS): (5.0, 2.0), ("disk", LABELS): (2.0, 1.0)}
    profile = builders.profile(
        workers=2, states={"cpu": 0.3, "disk": 0.7}, fetch_ms=50.0, batches=120, step_ms=0.1
    )
    found = [blocked_in(with_waits(profile, waits, seed=n), "worker")[0] for n in range(40)]
    off = [(row.fraction - 5 / 7) / row.error for row in found if row.name == "rows"]
    spread = math.sqrt(sum(x * x for x in off) / len(off))
    assert 0.6 < spread < 1.4


def test_time_is_the_exact_blocked_time_and_not_instants_times_period() -> None:
    profile = disk_profile()
    # Only every fourth instant was fair: the time is the same, only the doubt is larger.
    sparse = with_waits(profile, {("disk", ROWS): (5.0, 2.0)}, rate_hz=5.0)
    (place,) = blocked_in(sparse, "worker", ("disk",))
    threads = [row for row in profile.threads if row.role == "worker"]
    blocked = sum(row.last_ns - row.first_ns - row.run_ns - row.run_queue_ns for row in threads)
    states = blocked_states(sparse, "worker")
    assert place.time_ns == pytest.approx(states["disk"][2], rel=1e-6)
    assert sum(ns for _, _, ns in states.values()) == pytest.approx(blocked, rel=1e-3)


def test_a_state_seen_from_outside_only_is_no_functions_time() -> None:
    profile = disk_profile(cpu=0.3, disk=0.4, page_fault=0.3)
    seen = with_waits(profile, {("disk", ROWS): (5.0, 2.0)})
    (place,) = [row for row in blocked_in(seen, "worker", phases=("fetch",)) if row.name == "rows"]
    assert place.fraction == pytest.approx(4 / 7, abs=0.06)


def test_without_states_from_outside_those_from_inside_divide_the_time() -> None:
    waits = {("disk", ROWS): (6.0, 2.0), ("page_fault", FAULT): (4.0, 2.0)}
    profile = replace(with_waits(disk_profile(), waits), tier="no_ptrace")
    found = {row.name: row for row in blocked_in(profile, "worker")}
    assert found["rows"].fraction == pytest.approx(0.6, abs=0.08)
    assert found["labels"].call == "page fault"
    assert found["labels"].state == "page_fault"


@pytest.mark.parametrize("wait_ms", [1.0, 5.0, 40.0, 80.0, 200.0])
def test_the_length_of_one_wait_is_found(wait_ms: float) -> None:
    profile = with_waits(disk_profile(), {("disk", ROWS): (wait_ms, wait_ms * 3 / 7)})
    (place,) = blocked_in(profile, "worker", ("disk",))
    assert place.mean_wait_s == pytest.approx(wait_ms / 1e3, rel=0.25)


@pytest.mark.parametrize("length", [0.3, 0.8, 1.0, 1.4, 2.0, 5.0])
def test_the_chance_of_two_instants_in_one_wait_is_that_of_the_drawing(length: float) -> None:
    rng = random.Random(1)
    tries, hits = 40_000, 0
    for _ in range(tries):
        first = rng.random()  # in the first period; the wait lies around it
        end = first + length * rng.random()
        hits += 1 + rng.random() < end
    assert hits / tries == pytest.approx(chance_of(length), abs=0.01)
    assert length_for(chance_of(length)) == pytest.approx(length, rel=1e-6)


def test_phases_and_times_narrow_down_what_is_counted() -> None:
    profile = with_waits(disk_profile(), {("disk", ROWS): (5.0, 2.0)})
    middle = (profile.start_ns + profile.end_ns) // 2
    all_seen = sum(row.seen for row in blocked_in(profile, "worker"))
    assert 0 < blocked_in(profile, "worker", start_ns=middle)[0].seen < 0.6 * all_seen
    assert blocked_in(profile, "consumer") == []
    assert blocked_in(profile, "worker", phases=("step",)) == []
    (best, count), *_ = stacks_at(profile, "worker", middle, middle + 500 * MS)
    assert best.frames == ROWS
    assert 4 <= count <= 11
    assert fetching_role(profile) == "worker"


def test_a_profile_without_stacks_by_state_says_so() -> None:
    with pytest.raises(NotMeasuredError):
        blocked_in(disk_profile(), "worker")


def test_stacks_by_state_survive_a_file(tmp_path: Path) -> None:
    profile = with_waits(disk_profile(), {("disk", ROWS): (5.0, 2.0)})
    save(profile, tmp_path / "x.ioscope.json")
    assert load(tmp_path / "x.ioscope.json").blocked == profile.blocked


@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("wait_ms", [5.0, 50.0])
def test_a_known_split_comes_back_from_a_real_run(tmp_path: Path, wait_ms: float) -> None:
    """`make bench` measures it with more time; here within 5 points and three standard errors."""
    from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler

    samples = int(5000 / (wait_ms * 1.6 + wait_ms * 0.5))
    with slow_file(tmp_path, wait_ms) as file:
        profiler = Profiler(CaptureOptions())
        profiler.start()
        truth = iterate(Split(file, samples, wait_ms * 0.6, labels_every=2), 1, 4)
        profile = profiler.stop()
    fetch_ns = sum(row.fetch_ns for row in profile.fetches)
    places = {row.name.rpartition(".")[2]: row for row in blocked_in(profile, "worker")}
    for name in ("read_rows", "read_labels"):
        place = places[name]
        error = place.error * place.time_ns / place.fraction / fetch_ns
        off = abs(place.time_ns - getattr(truth, name)) / fetch_ns
        assert off < 0.05 + 3 * error
    assert places["read_rows"].state == "disk"
    assert "burn" not in places or places["burn"].wall_fraction < 0.03
