"""Builds valid profiles and comparisons, so that rules and views are tested on values.

Profiles come from the simulator beside this file. Everything a real capture would read (exact
thread times, sampled states, records) is read off the simulated timelines, so the numbers of one
profile always agree with each other.
"""

from __future__ import annotations

import dataclasses
import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from jupyter_ioscope.model.comparison import Arm, Comparison, Offer, SameData, Trial
from jupyter_ioscope.model.profile import Cell, Cost, Gap, Machine, Profile
from jupyter_ioscope.model.readings import Frame, Series, Stack, Stacks, ThreadReadings
from jupyter_ioscope.model.records import LoaderInfo
from tests.simulator import MS, PID, SEEN, START_NS, S, World


def machine(cpus: int = 4, quota: float | None = None) -> Machine:
    return Machine(
        system="Linux 6.18",
        python="3.11.9",
        ioscope="0.1.0",
        packages=(("torch", "2.13.0"), ("numpy", "2.1.0")),
        cpus=max(cpus, 2),
        cpus_usable=cpus,
        cpu_quota=quota,
        memory_bytes=16 * 10**9,
    )


def profile(
    workers: int = 2,
    *,
    fetch_ms: float = 20.0,
    cpu_fraction: float | None = None,
    disk_fraction: float = 0.0,
    states: Mapping[str, float] | None = None,
    step_ms: float = 2.0,
    batches: int = 100,
    epochs: int = 1,
    batch_size: int = 8,
    fetch_cv: float = 0.1,
    main_ms: float = 0.3,
    delay_ms: float = 0.2,
    put_ms: float = 0.2,
    feeder_ms: float = 0.2,
    prefetch: int = 2,
    start_ms: float = 20.0,
    end_ms: float = 5.0,
    entry_ms: float = 10.0,
    collate_fraction: float = 0.05,
    persistent: bool = False,
    tensors: int = 2,
    batch_bytes: int = 8 * 150_000,
    read_bytes: int = 0,
    cpus: int = 4,
    quota: float | None = None,
    rate_hz: float = 25.0,
    tier: str = "full",
    seen_late_ms: float = 60.0,
    hot: str = "decode",
    start_method: str = "fork",
    others_cores: float = 0.0,
    before_ms: float = 5.0,
    seed: int = 0,
) -> Profile:
    """A profile of one loader.

    `states` gives the parts of a fetch as fractions that sum to 1 (names: cpu, run_queue, disk,
    page_fault, network, sleep, process, gil, lock, other); without it, a fetch is `cpu_fraction`
    CPU and `disk_fraction` disk, the remainder blocked for an unseen reason. `seen_late_ms` is how
    long a thread lived before the sampler found it, `others_cores` what other programs of the
    machine used, and `before_ms` what passed before the loop began. Tier "in_process" has records
    only.
    """
    world = World(
        workers=workers,
        batches=batches,
        epochs=epochs,
        batch_size=batch_size,
        fetch_ms=fetch_ms,
        fetch_cv=fetch_cv,
        states=_complete(states, cpu_fraction, disk_fraction),
        step_ms=step_ms,
        main_ms=main_ms,
        delay_ms=delay_ms,
        put_ms=put_ms,
        feeder_ms=feeder_ms,
        prefetch=prefetch,
        start_ms=start_ms,
        end_ms=end_ms,
        entry_ms=entry_ms,
        collate_fraction=collate_fraction,
        persistent=persistent,
        tensors=tensors,
        batch_bytes=batch_bytes,
        read_bytes=read_bytes,
        rng=random.Random(seed),
        now_ns=START_NS + int(before_ms * MS),
    )
    for number in range(epochs):
        world.epoch(number)
    end_ns = world.now_ns + 5 * MS
    sampled = tier != "in_process"
    return Profile(
        label="In [7]",
        created_utc="2026-05-01T12:00:00Z",
        start_ns=START_NS,
        end_ns=end_ns,
        pid=PID,
        consumer_tid=PID,
        machine=machine(cpus, quota),
        tier=tier,
        cell=Cell(7, "for batch in loader:\n    train(batch)\n"),
        cells=(Cell(4, "def decode(path): ..."),),
        loaders=(_loader(world, start_method),),
        epochs=tuple(world.epoch_rows),
        batches=tuple(world.batch_rows),
        fetches=tuple(world.fetch_rows),
        workers=tuple(world.worker_rows),
        threads=_threads(world, end_ns, rate_hz, int(seen_late_ms * MS)) if sampled else (),
        series=_series(world, end_ns, others_cores) if sampled else MappingProxyType({}),
        stacks=_stacks(world, hot, rate_hz) if tier == "full" else None,
        cost=Cost(sampler_cpu_s=0.02, stacks_cpu_s=0.08, records_s=0.001),
        not_measured=(Gap("block-layer latency", "needs root"),)
        if sampled
        else (Gap("thread states", "the helper process could not be started"),),
    )


def without(value: Profile, **changes: object) -> Profile:
    """`value` with some fields replaced, for odd profiles."""
    return dataclasses.replace(value, **changes)  # type: ignore[arg-type]


def with_killed_worker(value: Profile, worker: int = 0) -> Profile:
    """`value` as if one worker had been killed: it never said that it left."""
    rows = tuple(row._replace(left_ns=-1) if row.worker == worker else row for row in value.workers)
    return dataclasses.replace(value, workers=rows)


def with_workers_before_profile(value: Profile) -> Profile:
    """`value` as if the workers had been running before: no records of theirs."""
    loaders = tuple(dataclasses.replace(row, workers_before_profile=True) for row in value.loaders)
    rows = tuple(row._replace(created_ns=-1, entered_ns=-1) for row in value.workers)
    return dataclasses.replace(value, loaders=loaders, fetches=(), workers=rows)


def empty_profile(**changes: object) -> Profile:
    """A profile of a cell that iterated nothing."""
    blank = Profile(
        label="In [1]",
        created_utc="2026-05-01T12:00:00Z",
        start_ns=START_NS,
        end_ns=START_NS + S,
        pid=PID,
        consumer_tid=PID,
        machine=machine(),
    )
    return without(blank, **changes)


def _complete(
    states: Mapping[str, float] | None, cpu_fraction: float | None, disk_fraction: float
) -> Mapping[str, float]:
    if states is None:
        cpu = 1.0 - disk_fraction if cpu_fraction is None else cpu_fraction
        states = {"cpu": cpu, "disk": disk_fraction, "other": 1.0 - cpu - disk_fraction}
    unknown = set(states) - set(SEEN)
    if unknown or abs(sum(states.values()) - 1.0) > 1e-9:
        raise ValueError(f"parts of a fetch must be known and sum to 1: {dict(states)}")
    return {part: fraction for part, fraction in states.items() if fraction > 1e-9}


def _loader(world: World, start_method: str) -> LoaderInfo:
    return LoaderInfo(
        loader=0,
        library="torch",
        class_name="torch.utils.data.dataloader.DataLoader",
        dataset_class="Photos",
        dataset_kind="map",
        num_workers=world.workers,
        batch_size=world.batch_size,
        prefetch_factor=world.prefetch if world.workers else None,
        persistent_workers=world.persistent,
        start_method=start_method if world.workers else None,
        samples_total=world.batches * world.batch_size,
    )


def _threads(
    world: World, end_ns: int, rate_hz: float, seen_late_ns: int
) -> tuple[ThreadReadings, ...]:
    found = [
        world.consumer.readings(
            pid=PID,
            tid=PID,
            name="python",
            role="consumer",
            worker=-1,
            first_ns=START_NS + MS,
            last_ns=end_ns - MS,
            rate_hz=rate_hz,
            idle="poll",
            rng=world.rng,
        )
    ]
    faults: dict[int, int] = {}
    for row in world.fetch_rows:
        faults[row.pid] = faults.get(row.pid, 0) + row.major_faults
    for info in world.worker_rows:
        first_ns = info.entered_ns + seen_late_ns
        last_ns = info.left_ns if info.left_ns > 0 else end_ns
        if first_ns >= last_ns:
            continue  # lived too short to be found
        for tid, timeline, name, role in (
            (info.tid, world.main[info.pid], "python", "worker"),
            (info.tid + 100_000, world.feeders[info.pid], "QueueFeederThread", "feeder"),
        ):
            found.append(
                timeline.readings(
                    pid=info.pid,
                    tid=tid,
                    name=name,
                    role=role,
                    worker=info.worker,
                    first_ns=first_ns,
                    last_ns=last_ns,
                    rate_hz=rate_hz,
                    idle="poll" if role == "worker" else "futex",
                    rng=world.rng,
                    major_faults=faults.get(info.pid, 0) if role == "worker" else 0,
                )
            )
    return tuple(found)


def _series(world: World, end_ns: int, others_cores: float) -> Mapping[str, Series]:
    """Cumulative disk bytes, peak memory and CPU of tree and machine at 4 Hz."""
    times = tuple(range(START_NS, end_ns, S // 4)) or (START_NS,)
    ends = sorted(row.end_ns for row in world.fetch_rows)
    read = tuple(float(bisect_right(ends, now) * world.read_bytes) for now in times)
    lanes = [world.consumer, *world.main.values(), *world.feeders.values()]
    cpu = tuple(float(sum(lane.total("cpu", START_NS, now) for lane in lanes)) for now in times)
    busy = tuple(
        used + others_cores * (now - START_NS) for used, now in zip(cpu, times, strict=True)
    )
    memory = tuple(4e8 + 2e8 * max(1, world.workers) for _ in times)
    return MappingProxyType(
        {
            "memory_pss": Series("memory_pss", "bytes", "gauge", "tree", times, memory),
            "disk_read_bytes": Series(
                "disk_read_bytes", "bytes", "cumulative", "tree", times, read
            ),
            "tree_cpu_ns": Series("tree_cpu_ns", "ns", "cumulative", "tree", times, cpu),
            "machine_busy_ns": Series(
                "machine_busy_ns", "ns", "cumulative", "machine", times, busy
            ),
        }
    )


def _stacks(world: World, hot: str, rate_hz: float) -> Stacks:
    """CPU stacks: 85 % of a fetch's CPU in `hot` (called from `__getitem__` of In [4]), the rest
    in the library's collate."""
    frames = (
        Frame("<module>", "In [7]", 1, 7),
        Frame("fetch", "/site-packages/torch/utils/data/_utils/fetch.py", 54),
        Frame("__getitem__", "In [4]", 9, 4),
        Frame(hot, "In [4]", 12, 4),
        Frame("load", "/site-packages/PIL/ImageFile.py", 390),
        Frame("default_collate", "/site-packages/torch/utils/data/_utils/collate.py", 398),
        Frame("train", "In [7]", 2, 7),
    )
    stacks: list[Stack] = []
    if world.workers:
        for pid in world.main:
            worker = next(row.worker for row in world.worker_rows if row.pid == pid)
            busy_ns = sum(row.cpu_ns for row in world.fetch_rows if row.pid == pid)
            count = int(busy_ns / S * rate_hz)
            stacks += _fetch_stacks("worker", worker, pid, count, ())
    else:
        busy_ns = sum(row.cpu_ns for row in world.fetch_rows)
        stacks += _fetch_stacks("consumer", -1, PID, int(busy_ns / S * rate_hz), (0,))
    step_count = int(sum(row.step_cpu_ns for row in world.batch_rows) / S * rate_hz)
    if step_count:
        stacks.append(Stack("consumer", -1, PID, "MainThread", (0, 6), step_count))
    return Stacks("py-spy", rate_hz, True, frames, tuple(stacks))


def _fetch_stacks(
    role: str, worker: int, pid: int, count: int, above: tuple[int, ...]
) -> list[Stack]:
    hot = round(count * 0.85)
    rows = [
        Stack(role, worker, pid, "MainThread", (*above, 1, 2, 3, 4), hot),
        Stack(role, worker, pid, "MainThread", (*above, 1, 5), count - hot),
    ]
    return [row for row in rows if row.count]


def offers() -> tuple[Offer, ...]:
    """The first four toggles as offered for a decode-bound loader."""
    return (
        Offer("draft_decode", "Decode at reduced size", "PIL decodes fewer pixels.",
              "Pixels differ a little after the resize.", "", True,
              "image.draft('RGB', (224, 224))"),
        Offer("workers", "4 workers", "More worker processes.", "More memory.", "", True,
              "DataLoader(..., num_workers=4)"),
        Offer("prefetch", "Prefetch 4 batches", "Each worker keeps 4 batches ready.",
              "Memory for the batches.", "", False, "DataLoader(..., prefetch_factor=4)"),
        Offer("persistent_workers", "Keep workers", "Workers live through all epochs.",
              "They keep their memory.", "There is only one epoch.", False,
              "DataLoader(..., persistent_workers=True)"),
    )  # fmt: skip


def comparison(
    ratio: float = 1.8,
    *,
    verdict: str | None = None,
    pairs: int = 8,
    base_per_s: float = 200.0,
    spread: float = 0.04,
    same: str = "identical",
    cancelled: bool = False,
    seed: int = 0,
) -> Comparison:
    """A comparison whose arm B is `ratio` times as fast as A, give or take `spread`."""
    rng = random.Random(seed)
    trials = [
        _trial(arm, pair, base_per_s * factor * rng.gauss(1.0, spread))
        for pair in range(pairs)
        for arm, factor in (("A", 1.0), ("B", ratio))
    ]
    half = 2.2 * spread * (2 / max(1, pairs)) ** 0.5
    low, high = ratio * (1 - half), ratio * (1 + half)
    found = verdict or ("faster" if low > 1 else "slower" if high < 1 else "undecided")
    settings = (("num_workers", "2"), ("prefetch_factor", "2"))
    return Comparison(
        verdict=found,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        confidence=0.95,
        cpu_ratio=ratio,
        cpu_ratio_low=low,
        cpu_ratio_high=high,
        smallest_visible=half,
        arms=(
            _arm("A", "as it is", settings, (), trials),
            _arm("B", "draft decode", settings, ("draft_decode",), trials),
        ),
        trials=tuple(trials),
        same_data=SameData(same, "Both arms delivered the same 256 samples.", 256, 0.0),
        cache="warm",
        cache_text="99 % of the files' pages were in memory before each trial.",
        isolation="forked child",
        isolation_text="Each trial ran in a process of its own.",
        code="image.draft('RGB', (224, 224))",
        seconds=2.0 * len(trials),
        cancelled=cancelled,
    )


def _trial(arm: str, pair: int, samples_per_s: float) -> Trial:
    samples = int(samples_per_s * 2)
    return Trial(arm, pair, samples, samples // 8, 6, 2.0, samples_per_s, 9.0, 1.7, 10**9, 0.03)


def _arm(
    name: str,
    label: str,
    settings: tuple[tuple[str, str], ...],
    toggles: tuple[str, ...],
    trials: Sequence[Trial],
) -> Arm:
    rates = sorted(trial.samples_per_s for trial in trials if trial.arm == name) or [0.0]
    middle, count = rates[len(rates) // 2], len(rates)
    ends = (rates[0], rates[-1])
    return Arm(name, label, settings, toggles, middle, *ends, 9.0, 1.7, 10**9, count)


def part_names(pairs: Iterable[tuple[str, int, int]]) -> list[str]:
    """Names of the parts that hold time, largest first."""
    return [name for name, time_ns, _ in sorted(pairs, key=lambda part: -part[1]) if time_ns > 0]


def replaced(reading: ThreadReadings, **changes: object) -> ThreadReadings:
    """A thread's readings with some fields replaced."""
    return dataclasses.replace(reading, **changes)  # type: ignore[arg-type]
