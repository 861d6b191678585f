"""Rules about open files: shared positions after a fork, the limit, blocks that are read twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import HeldFile, LineCalls, ProcessUse
from jupyter_ioscope.model.profile import Profile
from tests import builders
from tests import work_values as values

READS: dict[str, Any] = {"read_bytes": 2_048, "read_calls": 1, "batch_bytes": 8 * 2_048}


def found(made: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(made).findings if row.cause == cause), None)


def reading(workers: int = 2, **settings: Any) -> Profile:
    return values.profile((values.USER, 40), workers=workers, **{**READS, **settings})


def held(made: Profile, *, shared: bool = True, positions: int = 12) -> Profile:
    """`made` as if its workers held one file, with one open file for all or one each."""
    pids = tuple(sorted({made.pid, *(row.pid for row in made.fetches)}))
    sharing = pids if shared else ()
    file = HeldFile("/data/records.bin", pids, 9, 9, 0, made.start_ns, 10**7, sharing, positions)
    return builders.without(made, held_files=(file,))


def test_a_position_shared_by_workers_comes_first_for_the_data_are_wrong() -> None:
    first = diagnose(held(reading())).findings[0]
    assert (first.cause, first.harm) == ("fd_shared_after_fork", "data")
    assert "/data/records.bin" in first.evidence[0]
    assert "2 workers and this process" in first.evidence[0]
    assert "worker_init_fn" in first.advice


def test_mixed_up_data_is_not_said_to_be_what_the_loop_waits_for() -> None:
    headline = diagnose(held(reading())).headline
    assert ": samples may be mixed up. The loop waited for data " in headline


def test_workers_of_every_epoch_are_counted_once() -> None:
    first = diagnose(held(reading(epochs=4, persistent=False))).findings[0]
    assert "2 workers and this process" in first.evidence[0]


def test_a_lock_that_is_free_most_of_the_time_guards_all_the_same() -> None:
    def called(name: str) -> Profile:
        calls = (LineCalls("/me/data.py", 0, (name,)),)
        return builders.without(held(reading()), calls=calls)

    assert found(called("multiprocessing.Lock"), "fd_shared_after_fork") is None
    assert found(called("threading.Lock"), "fd_shared_after_fork") is not None


def test_shards_that_a_stream_opened_before_the_fork_are_read_by_one_worker_each() -> None:
    made = held(reading())
    streams = tuple(replace(row, dataset_kind="iterable") for row in made.loaders)
    one = builders.without(made, loaders=streams)
    several = builders.without(one, held_files=tuple(
        row._replace(path=f"/data/{number}") for row in made.held_files for number in range(2)
    ))  # fmt: skip
    assert found(several, "fd_shared_after_fork") is None
    assert found(one, "fd_shared_after_fork") is not None


@pytest.mark.parametrize(
    "made",
    [
        held(reading(), shared=False),  # each opened it for itself
        held(reading(), positions=1),  # a memory map, or reads that carry their place
        held(reading(read_bytes=0)),  # workers read from no file
        held(reading(workers=1)),  # nobody else moves it
        held(values.opened(reading(), files=800)),  # they read files of their own
        held(reading(states={"cpu": 0.5, "lock": 0.5})),  # a lock around seek and read
    ],
)
def test_files_that_are_not_read_through_a_shared_position(made: Profile) -> None:
    assert found(made, "fd_shared_after_fork") is None


def limited(made: Profile, peak: int, worker: int = -1) -> Profile:
    nothing = (0,) * 5
    use = ProcessUse(made.pid, worker, made.start_ns, made.end_ns, *nothing, 0, 0, 0, peak, 1_024)
    return builders.without(made, processes=(use,))


def test_a_limit_of_open_files_that_is_near() -> None:
    first = diagnose(limited(builders.profile(), 900)).findings[0]
    assert (first.cause, first.harm) == ("open_files_limit", "run")
    assert "900 files open, 88\xa0% of the 1,024" in first.evidence[0]
    assert "RLIMIT_NOFILE" in first.advice


def test_without_workers_nothing_is_said_of_what_they_hand_over() -> None:
    alone = diagnose(limited(builders.profile(0), 900)).findings[0]
    beside = diagnose(limited(builders.profile(2), 900)).findings[0]
    assert "sharing_strategy" in beside.advice
    assert "sharing_strategy" not in alone.advice
    assert not any("hands over" in line for line in alone.evidence)


def test_a_worker_near_its_limit_is_named() -> None:
    first = diagnose(limited(builders.profile(), 1_000, worker=3)).findings[0]
    assert first.evidence[0].startswith("Worker 3 had up to 1,000 files open")


def test_few_open_files_are_no_trouble() -> None:
    assert found(limited(builders.profile(), 300), "open_files_limit") is None


@pytest.mark.parametrize(
    "said",
    [
        "[Errno 24] Too many open files: '/x.jpg'",
        "received 0 items of ancdata",
        "OSError: ERRNO 24",
    ],
)
def test_a_cell_that_ended_for_want_of_descriptors(said: str) -> None:
    made = replace(builders.profile(), ended_by="OSError", ended_text=said)
    first = diagnose(made).findings[0]
    assert first.cause == "open_files_limit"
    assert said in first.evidence[0]


def test_another_error_is_not_that_limit() -> None:
    made = replace(builders.profile(), ended_by="OSError", ended_text="no such file: 24.jpg")
    assert found(made, "open_files_limit") is None


def pieces(asked: int, brought: int, calls: int = 1, **settings: Any) -> Profile:
    """Two workers mostly blocked on the disk; bytes a sample that were asked for and that came."""
    made = values.profile(
        (values.READ_LINE, 40),
        workers=2,
        states={"cpu": 0.2, "disk": 0.8},
        step_ms=0.5,
        read_bytes=asked,
        read_calls=calls,
        batch_bytes=8 * asked,
        **settings,
    )
    samples = sum(row.samples for row in made.fetches) // 2
    uses = tuple(row._replace(device_read_bytes=brought * samples) for row in made.processes)
    return builders.without(made, processes=uses)


def test_records_between_pages_are_read_twice() -> None:
    first = diagnose(pieces(4_096, 8_192)).findings[0]
    assert (first.cause, first.resource) == ("read_amplification", "disk")
    assert "2.0 times the" in first.evidence[0]
    assert "4,096" in first.advice
    assert first.share == pytest.approx(0.4, abs=0.06)  # half of the waits, by bytes


@pytest.mark.parametrize(
    "made",
    [
        pieces(4_096, 4_200),  # each page once
        pieces(4_096, 0),  # from the page cache
        pieces(400_000, 800_000),  # large pieces: one page more is nothing
    ],
)
def test_blocks_that_are_read_once(made: Profile) -> None:
    assert found(made, "read_amplification") is None


def mapped(brought: int) -> Profile:
    """Two workers that wait for pages of a map; a sample holds 4 kB."""
    made = values.profile(
        (values.USER, 40), workers=2, states={"cpu": 0.2, "page_fault": 0.8}, step_ms=0.5,
        batch_bytes=8 * 4_096,
    )  # fmt: skip
    samples = sum(row.samples for row in made.fetches) // 2
    uses = tuple(row._replace(device_read_bytes=brought * samples) for row in made.processes)
    return builders.without(made, processes=uses)


def test_what_is_read_around_page_faults_in_vain_is_told() -> None:
    row = found(mapped(131_072), "page_fault_io")
    assert row is not None
    assert "reads around every fault" in " ".join(row.evidence)
    assert "MADV_RANDOM" in row.advice


def test_pages_in_order_are_not_read_in_vain() -> None:
    row = found(mapped(4_200), "page_fault_io")
    assert row is not None
    assert "MADV_RANDOM" not in row.advice
