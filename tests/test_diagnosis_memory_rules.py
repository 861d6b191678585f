"""Rules about memory: copies of Python objects, waiting batches, shared memory, pinning."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.memory_facts import copied_by_workers, memory_budget_bytes
from jupyter_ioscope.diagnosis.queued import queued
from jupyter_ioscope.diagnosis.ranking import ranked
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import GcPause, ProcessUse
from jupyter_ioscope.model.profile import Profile
from tests import builders

MB = 1_000_000
MS = 1_000_000


def found(profile: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(profile).findings if row.cause == cause), None)


def with_memory(
    profile: Profile, *, private_mb: int, new_mb: int = 4, faulted_mb: int | None = None
) -> Profile:
    """`profile` with the memory that each worker noted as it ended, and faults in its fetches."""
    faulted = private_mb if faulted_mb is None else faulted_mb
    uses = tuple(
        ProcessUse(
            row.pid, row.worker, row.entered_ns, row.left_ns, 0, 0, 0, 0, 0, 0, 5 * MB,
            private_mb * MB, 8, 1024, 200 * MB, (200 + new_mb) * MB,
        )
        for row in profile.workers
    )  # fmt: skip
    count = len(profile.fetches) / len(profile.workers)
    each = int(faulted * MB / 4096 / count)
    fetches = tuple(row._replace(minor_faults=each) for row in profile.fetches)
    return builders.without(profile, processes=uses, fetches=fetches)


# -- copies of Python objects ---------------------------------------------------------------------


def test_workers_that_copy_what_they_read_are_named_first() -> None:
    profile = with_memory(builders.profile(4, fetch_ms=40), private_mb=120, faulted_mb=100)
    first = diagnose(profile).findings[0]
    assert (first.cause, first.resource, first.harm) == ("cow_python_objects", "memory", "memory")
    assert first.share < 0.05, "it costs memory, hardly time"
    assert "400\u00a0MB" in first.evidence[0]
    assert "numpy" in first.advice


def test_it_is_seen_beside_large_buffers_that_come_and_go() -> None:
    profile = with_memory(builders.profile(4), private_mb=300, faulted_mb=5000)
    row = found(profile, "cow_python_objects")
    assert row is not None
    assert "while items were read" not in " ".join(row.evidence)


@pytest.mark.parametrize(
    "memory",
    [
        {"private_mb": 17, "faulted_mb": 3},
        {"private_mb": 20, "faulted_mb": 4000},
        {"private_mb": 300, "new_mb": 290, "faulted_mb": 295},
        {"private_mb": 26, "faulted_mb": 18},
    ],
    ids=["what every fork copies", "buffers", "a cache of the workers' own", "little"],
)
def test_other_uses_of_memory_are_no_copies(memory: dict[str, int]) -> None:
    profile = with_memory(builders.profile(2), **memory)
    assert found(profile, "cow_python_objects") is None


@pytest.mark.parametrize("private_mb", [57, 75])
def test_what_a_garbage_collection_copies_at_once_is_not_the_datasets(private_mb: int) -> None:
    calm = with_memory(builders.profile(2), private_mb=private_mb, faulted_mb=7)
    firsts = {row.pid: row for row in reversed(calm.fetches)}
    collected = tuple(
        row._replace(minor_faults=row.minor_faults + 12_000) if firsts[row.pid] is row else row
        for row in calm.fetches
    )
    profile = builders.without(calm, fetches=collected)
    assert found(profile, "cow_python_objects") is None

    objects = with_memory(builders.profile(2), private_mb=private_mb + 100, faulted_mb=107)
    both = tuple(
        row._replace(minor_faults=row.minor_faults + more.minor_faults)
        for row, more in zip(objects.fetches, collected, strict=True)
    )
    profile = builders.without(objects, fetches=both)
    assert found(profile, "cow_python_objects") is not None, "objects are read beside it"


def collecting(private_mb: int, collected_mb: int) -> Profile:
    """Workers whose first fetch meets a noted run of the collector that copies so much."""
    calm = with_memory(builders.profile(2), private_mb=private_mb, faulted_mb=7)
    firsts = {row.pid: row for row in reversed(calm.fetches)}
    rows = tuple(
        row._replace(minor_faults=row.minor_faults + collected_mb * MB // 4096)
        if firsts[row.pid] is row
        else row
        for row in calm.fetches
    )
    pauses = tuple(
        GcPause(row.pid, row.worker, row.start_ns + MS, row.end_ns - MS, 2, 0)
        for row in firsts.values()
    )
    return builders.without(calm, fetches=rows, gc_pauses=pauses)


def test_what_a_noted_collection_copies_is_its_own_however_much_it_is() -> None:
    profile = collecting(private_mb=320, collected_mb=300)
    copied = copied_by_workers(profile)
    assert copied.collected_bytes == pytest.approx(600 * MB, rel=0.05)
    assert copied.bytes < 20 * MB, "what the fetches themselves take"
    assert found(profile, "cow_python_objects") is None, "a small part of this machine's memory"


def test_a_collection_that_copies_a_good_part_of_the_memory_is_a_harm_of_its_own() -> None:
    row = found(collecting(private_mb=620, collected_mb=600), "cow_python_objects")
    assert row is not None
    assert row.harm == "memory"
    assert "gc.freeze()" in row.advice
    assert "numpy" not in row.advice, "reading the objects is not what copies them"


def test_spawned_workers_share_nothing_that_could_be_copied() -> None:
    profile = with_memory(builders.profile(4, start_method="spawn"), private_mb=400)
    assert found(profile, "cow_python_objects") is None


def test_lives_of_one_worker_are_not_added_up() -> None:
    profile = with_memory(builders.profile(2, epochs=3, batches=40), private_mb=100)
    assert len(profile.processes) == 6
    assert copied_by_workers(profile).workers == 2
    assert copied_by_workers(profile).bytes < 2 * 100 * MB


def test_without_readings_the_copies_are_not_known() -> None:
    with pytest.raises(NotMeasuredError):
        copied_by_workers(builders.profile(2))


def test_the_limit_of_the_container_counts_before_the_memory_of_the_machine() -> None:
    machine = builders.machine()
    assert memory_budget_bytes(machine) == machine.memory_bytes
    limited = dataclasses.replace(machine, memory_limit_bytes=2 * 10**9)
    assert memory_budget_bytes(limited) == 2 * 10**9


# -- waiting batches ------------------------------------------------------------------------------


def large(step_ms: float, batch_mb: int = 600) -> Profile:
    return builders.profile(
        4, fetch_ms=20, step_ms=step_ms, batch_bytes=batch_mb * MB, tensors=1, batches=60
    )


def test_batches_that_wait_are_counted_from_the_records() -> None:
    profile = large(step_ms=60)
    made = {row.batch: fetch for row, fetch in zip(profile.batches, sorted(
        profile.fetches, key=lambda row: row.task), strict=True)}  # fmt: skip
    waiting = queued(profile.loaders[0], profile.batches, made)
    assert waiting.most == 8
    assert 6 <= waiting.peak <= 8
    assert waiting.mean < waiting.peak


def test_batches_that_fill_the_memory_while_they_wait_are_found() -> None:
    row = found(large(step_ms=60), "prefetch_memory")
    assert row is not None
    assert row.harm == "memory"
    assert "prefetch_factor=1 (now 2)" in row.advice


@pytest.mark.parametrize("profile", [large(step_ms=60, batch_mb=20), large(step_ms=0.1)],
                         ids=["small batches", "taken at once"])  # fmt: skip
def test_batches_that_leave_room_are_no_trouble(profile: Profile) -> None:
    assert found(profile, "prefetch_memory") is None


# -- shared memory --------------------------------------------------------------------------------


def with_shm(profile: Profile, shm_mb: int, **changes: object) -> Profile:
    machine = dataclasses.replace(profile.machine, shm_bytes=shm_mb * MB)
    return builders.without(profile, machine=machine, **changes)


@pytest.mark.parametrize(
    "text",
    [
        "DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory. Please try to raise the limit.",
        "unable to allocate shared memory(shm) for file </torch_19_3_2>: No space left on device",
        "[Errno 28] No space left on device",
    ],
)
def test_a_worker_that_died_of_it_is_named_first(text: str) -> None:
    profile = with_shm(
        builders.profile(2, batches=20), 64, ended_by="RuntimeError", ended_text=text
    )
    first = diagnose(profile).findings[0]
    assert (first.cause, first.harm) == ("shm_limit", "run")
    assert "--shm-size" in first.advice


def test_it_is_said_even_where_no_batch_came() -> None:
    blank = builders.without(
        builders.profile(2, batches=4), batches=(), fetches=(), ended_by="RuntimeError",
        ended_text="... is killed by signal: Bus error ...",
    )  # fmt: skip
    assert diagnose(with_shm(blank, 64)).findings[0].cause == "shm_limit"


def test_a_full_disk_is_not_taken_for_shared_memory() -> None:
    profile = with_shm(
        builders.profile(2), 8_000, ended_by="OSError", ended_text="No space left on device"
    )
    assert found(profile, "shm_limit") is None


def test_it_is_said_before_it_happens() -> None:
    profile = builders.profile(4, batch_bytes=10 * MB, batches=40)
    near = found(with_shm(profile, 90), "shm_limit")
    assert near is not None
    assert near.harm == "memory"
    assert found(with_shm(profile, 900), "shm_limit") is None
    assert found(with_shm(profile, 0), "shm_limit") is None, "unknown is not small"


# -- pinning --------------------------------------------------------------------------------------


def pinned(busy: float, pin: bool = True) -> Profile:
    """A loop that waits in hand-over while one thread pins batches for `busy` of the time."""
    base = builders.profile(
        2, fetch_ms=4, step_ms=1, delay_ms=12, main_ms=0.5, batches=150, tensors=1,
        batch_bytes=4 * MB,
    )  # fmt: skip
    main = next(row for row in base.threads if row.role == "consumer")
    thread = dataclasses.replace(
        main, tid=99, role="pin_memory", run_ns=int(busy * base.wall_ns), run_queue_ns=0
    )
    info = dataclasses.replace(base.loaders[0], pin_memory=pin)
    return builders.without(base, threads=(*base.threads, thread), loaders=(info,))


def test_a_pinning_thread_that_cannot_keep_up_is_the_limit() -> None:
    first = diagnose(pinned(0.9)).findings[0]
    assert first.cause == "pin_memory_misuse"
    assert "pin_memory=False" in first.advice


def test_pinning_beside_the_loop_costs_nothing() -> None:
    assert found(pinned(0.2), "pin_memory_misuse") is None
    assert found(builders.profile(2), "pin_memory_misuse") is None


# -- the order of findings ------------------------------------------------------------------------


def plain(cause: str, share: float, harm: str = "") -> Finding:
    return Finding(cause, "none", cause, share, share, share, share * 10, (), "", harm=harm)


def test_harm_comes_before_time_and_the_worst_harm_first() -> None:
    rows = [
        plain("time", 0.9),
        plain("memory", 0.0, "memory"),
        plain("data", 0.5, "data"),
        plain("run", 0.0, "run"),
        plain("noise", 0.01),
    ]
    assert [row.cause for row in ranked(rows)] == ["run", "data", "memory", "time"]


def test_queues_deeper_than_anybody_needs_are_found_on_a_large_machine() -> None:
    deep = builders.profile(
        2, fetch_ms=8, step_ms=30, prefetch=30, batch_bytes=16 * MB, tensors=1, batches=120
    )
    row = found(deep, "prefetch_memory")
    assert row is not None
    assert "prefetch_factor=2 (now 30)" in row.advice
    needed = builders.profile(
        2, fetch_ms=40, fetch_cv=1.5, step_ms=16, prefetch=30, batch_bytes=16 * MB, batches=120
    )
    assert found(needed, "prefetch_memory") is None, "slow samples are bridged by it"
