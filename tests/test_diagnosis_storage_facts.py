"""Numbers about files, reads, memory and the garbage collector, from built profiles."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.storage_facts import StorageFacts, over_network, value_at
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import FileUse, GcPause, HeldFile, ProcessUse
from jupyter_ioscope.model.profile import Gap, Profile
from jupyter_ioscope.model.readings import Series
from tests import builders

MS = 1_000_000


def pids(value: Profile) -> list[int]:
    return sorted({row.pid for row in value.fetches})


def samples(value: Profile, pid: int) -> int:
    return sum(row.samples for row in value.fetches if row.pid == pid)


def opened(path: str, pid: int, opens: int = 1, **changes: object) -> FileUse:
    use = FileUse(path, pid, 0, "fetch", "r", opens, 4_096, "ext4")
    return use._replace(**changes)  # type: ignore[arg-type]


def counters(pid: int, worker: int = 0, **changes: object) -> ProcessUse:
    use = ProcessUse(pid, worker, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 10, 1_000)
    return use._replace(**changes)  # type: ignore[arg-type]


def storage(value: Profile, **changes: object) -> StorageFacts:
    return Facts(builders.without(value, **changes)).storage


def test_files_of_their_own_are_opened_once_each() -> None:
    value = builders.profile(workers=2)
    files = tuple(
        opened(f"/data/{pid}-{number}", pid, size_bytes=1_000 + number)
        for pid in pids(value)
        for number in range(samples(value, pid))
    )
    facts = storage(value, files=files)
    assert facts.opens_per_sample == pytest.approx(1.0)
    assert facts.distinct_files == len(files)
    assert facts.opens_per_file == 1.0
    assert facts.reopened == ()
    assert 1_000 < facts.median_file_bytes < 1_000 + len(files)


def test_a_file_opened_for_every_item_is_told_with_its_rate() -> None:
    value = builders.profile(workers=2)
    first, second = pids(value)
    files = (
        opened("/data/a.bin", first, samples(value, first)),
        opened("/data/a.bin", second, samples(value, second)),
        opened("/data/once", first),
        opened("/data/index", first, 40, phase="setup"),
        opened("/data/log", first, 40, mode="w"),
    )
    [again] = storage(value, files=files).reopened
    assert (again.path, again.processes, again.size_bytes) == ("/data/a.bin", 2, 4_096)
    assert again.per_sample == pytest.approx(1.0)
    assert storage(value, files=files).opens_per_sample == pytest.approx(1.0, rel=0.01)


def test_file_systems_are_weighted_by_opens() -> None:
    value = builders.profile(workers=1)
    [pid] = pids(value)
    files = (
        opened("/data/a", pid, 3, filesystem="nfs4"),
        opened("/data/b", pid, 1),
        opened("/data/c", pid, 9, filesystem="", size_bytes=-1),
    )
    facts = storage(value, files=files)
    assert facts.filesystems == (("nfs4", 0.75), ("ext4", 0.25))
    assert facts.network_fraction == 0.75
    assert over_network("fuse.sshfs")
    assert not over_network("overlay")


def test_no_opens_are_a_number_and_an_unobserved_process_is_none() -> None:
    value = builders.profile(workers=2)
    facts = storage(value)
    assert facts.opens_per_sample == 0.0
    with pytest.raises(NotMeasuredError, match="opened none"):
        _ = facts.median_file_bytes
    broken = storage(value, not_measured=(Gap("opened files", "OSError: no space"),))
    for name in ("opens_per_sample", "reopened", "step_writes", "filesystems"):
        with pytest.raises(NotMeasuredError, match="no space"):
            getattr(broken, name)
    before = Facts(builders.with_workers_before_profile(value)).storage
    with pytest.raises(NotMeasuredError, match="already running"):
        _ = before.opens


def test_opens_by_any_library_are_shared_out_among_the_samples_since() -> None:
    value = builders.profile(workers=2)
    first, second = pids(value)
    middle_ns = value.fetches[len(value.fetches) // 2].start_ns
    later = sum(row.samples for row in value.fetches if row.start_ns >= middle_ns)
    rows = (
        HeldFile("/data/kept.h5", (first,), 9, 9, 0, middle_ns, 10),
        HeldFile("/data/again.h5", (first, second), 3, 9, 2 * later, middle_ns, 10),
        HeldFile("/data/unknown", (first,), 9, 9, -1, middle_ns, 10),
        HeldFile("/home/log", (value.pid,), 9, 9, 500, middle_ns, 10),
    )
    held = storage(value, held_files=rows).held
    assert [row.path for row in held] == ["/data/again.h5", "/data/kept.h5"]
    assert held[0].opens_per_sample == pytest.approx(2.0, rel=0.05)
    assert held[1].opens_per_sample == 0.0
    with pytest.raises(NotMeasuredError):
        _ = storage(value).held


def test_writes_in_the_step_are_told() -> None:
    value = builders.profile()
    files = (
        opened("/out/log", value.pid, 100, worker=-1, phase="step", mode="w"),
        opened("/out/read", value.pid, 100, worker=-1, phase="step"),
    )
    assert [use.path for use in storage(value, files=files).step_writes] == ["/out/log"]


def test_reads_are_shared_out_among_samples() -> None:
    value = builders.profile(workers=2, batch_bytes=8 * 1_000)
    rows = tuple(
        counters(
            pid,
            read_bytes=5_000 * samples(value, pid),
            read_calls=10 * samples(value, pid),
            device_read_bytes=4_096 * samples(value, pid),
        )
        for pid in pids(value)
    )
    facts = storage(value, processes=(counters(value.pid, -1, write_bytes=7), *rows))
    assert facts.read_bytes_per_sample == pytest.approx(5_000)
    assert facts.read_calls_per_sample == pytest.approx(10)
    assert facts.bytes_per_read_call == pytest.approx(500)
    assert facts.device_bytes_per_sample == pytest.approx(4_096)
    assert facts.used_bytes_per_sample == pytest.approx(1_000)
    assert facts.consumer_process.write_bytes == 7


def test_without_workers_only_reads_in_the_loop_count() -> None:
    value = builders.profile(workers=0, batches=200)
    loop = Facts(value).loop
    assert loop.wall_ns > 1_000 * MS
    times = (value.start_ns, loop.start_ns, loop.end_ns, value.end_ns)
    values = (0.0, 6_000_000.0, 8_000_000.0, 8_000_000.0)
    series = Series("tree_read_chars", "bytes", "cumulative", "tree", times, values)
    row = counters(value.pid, -1, read_bytes=8_000_000)
    facts = storage(value, processes=(row,), series=MappingProxyType({"tree_read_chars": series}))
    assert facts.read_bytes_per_sample == pytest.approx(2_000_000 / samples(value, value.pid))


def test_unreadable_counters_are_not_measured() -> None:
    value = builders.profile(workers=1)
    [pid] = pids(value)
    refused = storage(value, processes=(counters(pid, read_bytes=-1, read_calls=-1),))
    with pytest.raises(NotMeasuredError, match="may not be read"):
        _ = refused.read_bytes_per_sample
    with pytest.raises(NotMeasuredError, match="no such process"):
        _ = storage(value).read_calls_per_sample
    silent = storage(value, processes=(counters(pid),))
    with pytest.raises(NotMeasuredError, match="no read call"):
        _ = silent.bytes_per_read_call


def test_memory_and_descriptors_of_the_workers() -> None:
    value = builders.profile(workers=2)
    first, second = pids(value)
    rows = (
        counters(value.pid, -1, first_private_bytes=5, last_private_bytes=900),
        counters(first, 0, first_private_bytes=100, last_private_bytes=700, peak_open_files=900),
        counters(second, 1, first_private_bytes=-1, last_private_bytes=-1),
    )
    facts = storage(value, processes=rows)
    assert facts.private_growth_bytes == {first: 600}
    assert facts.open_files_fraction == pytest.approx(0.9)
    with pytest.raises(NotMeasuredError):
        _ = storage(value).private_growth_bytes
    with pytest.raises(NotMeasuredError):
        _ = storage(value).open_files_fraction


def test_pauses_count_where_they_fall() -> None:
    value = builders.profile(workers=1)
    [pid] = pids(value)
    loop, fetch = Facts(value).loop, value.fetches[3]
    half_ns = fetch.fetch_ns // 2
    pauses = (
        GcPause(value.pid, -1, loop.start_ns - 50 * MS, loop.start_ns + 10 * MS, 2, 0),
        GcPause(pid, 0, fetch.start_ns + half_ns, fetch.end_ns, 2, 0),
    )
    facts = storage(value, gc_pauses=pauses)
    assert facts.gc_share == pytest.approx(10 * MS / loop.wall_ns)
    fetching_ns = sum(row.fetch_ns for row in value.fetches)
    assert facts.gc_fraction_of_fetches == pytest.approx(half_ns / fetching_ns, rel=0.01)
    assert storage(value).gc_share == 0.0


def test_a_series_is_read_on_a_straight_line() -> None:
    series = Series("x", "bytes", "cumulative", "tree", (10, 20, 40), (0.0, 10.0, 50.0))
    assert [value_at(series, when) for when in (0, 15, 30, 99)] == [0.0, 5.0, 30.0, 50.0]
