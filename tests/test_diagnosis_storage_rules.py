"""Rules about how fetches read: they name their cause, and keep quiet on look-alikes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Series
from tests import builders
from tests import work_values as values

ROWS: dict[str, Any] = {"batch_bytes": 8 * 1_000, "fetch_ms": 16.0, "step_ms": 0.5}
FILES = ((values.OPEN_LINE, 30), (values.READ_LINE, 20), (values.USER, 5))


def first(made: Profile) -> Finding:
    return diagnose(made).findings[0]


def causes(made: Profile) -> set[str]:
    return {row.cause for row in diagnose(made).findings}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("opening", [values.H5_OPEN, values.ZIP_OPEN])
def test_a_container_opened_for_every_item(opening: tuple[Frame, ...], workers: int) -> None:
    made = values.profile((opening, 40), (values.H5_READ, 20), workers=workers, **ROWS)
    found = first(made)
    assert found.cause == "reopen_per_item"
    assert "once in each worker" in found.advice


def test_a_file_that_python_opens_again_and_again() -> None:
    made = values.opened(values.profile(*FILES, **ROWS), files=1, opens=800, size=10**8)
    found = first(made)
    assert found.cause == "reopen_per_item"
    assert any("800 times" in line for line in found.evidence)


def queried(opens: int) -> Profile:
    rows = ((values.OPEN_LINE, 12), (values.QUERY_LINE, 30), (values.USER, 4))
    return values.opened(values.profile(*rows, **ROWS), files=1, opens=opens, size=10**8)


def test_the_first_query_of_a_database_that_is_opened_anew_belongs_to_opening() -> None:
    found = first(queried(opens=800))
    assert found.cause == "reopen_per_item"
    assert found.low < 0.35 < 0.45 < found.share < 0.75 < found.high
    assert any("schema" in line for line in found.evidence)


def test_queries_of_a_database_that_is_opened_now_and_then_are_its_own_work() -> None:
    made = diagnose(queried(opens=300))
    found = next((row for row in made.findings if row.cause == "reopen_per_item"), None)
    assert found is None or found.share < 0.35


def test_a_query_that_reads_the_whole_table_lacks_an_index() -> None:
    rows = ((values.QUERY_LINE, 40), (values.USER, 4))
    assert "read_amplification" not in causes(values.profile(*rows, **ROWS))
    found = first(values.profile(*rows, read_bytes=5_000_000, **ROWS))
    assert found.cause == "read_amplification"
    assert "index" in found.advice


def test_text_that_is_parsed_again_up_to_the_item_is_read_in_vain() -> None:
    made = values.profile((values.JSON, 40), (values.USER, 4), read_bytes=2_000_000, **ROWS)
    found = first(values.opened(made, files=1, opens=800, size=4_000_000))
    assert found.cause == "read_amplification"
    once = values.opened(made, files=1, opens=1, size=2_000_000 * 800)
    assert first(once).cause == "text_parse_per_item"


def test_of_a_recording_only_the_part_that_is_used_should_be_read() -> None:
    sound = (values.GET, Frame("Wave_read.readframes", f"{values.LIB}/wave.py", 320))
    made = values.profile((sound, 40), (values.USER, 20), read_bytes=10_000_000, **ROWS)
    found = first(values.opened(made, files=8, opens=100, size=10_000_000))
    assert found.cause == "read_amplification"
    assert "num_frames" in found.advice


def test_a_container_opened_once_is_no_trouble() -> None:
    made = values.profile((values.H5_READ, 40), **{**ROWS, "fetch_ms": 1.0, "step_ms": 8.0})
    assert causes(made) == {"not_loader_bound"}


def test_opening_in_the_first_fetch_of_a_worker_is_start_up() -> None:
    made = values.profile((values.H5_OPEN, 10), (values.USER, 30), **ROWS)
    slow = made.fetches[0].start_ns - 600_000_000
    rows = (made.fetches[0]._replace(start_ns=slow), *made.fetches[1:])
    assert "reopen_per_item" not in causes(builders.without(made, fetches=rows))


def test_every_item_a_small_file() -> None:
    made = values.opened(values.profile(*FILES, **ROWS), files=800)
    found = first(made)
    assert found.cause == "many_small_files"
    assert "800 different ones" in found.evidence[0]


def test_waits_and_work_of_small_files_are_one_cause() -> None:
    waits: dict[str, Any] = {
        "states": {"cpu": 0.4, "disk": 0.6},
        "batch_bytes": 8 * 4096,
        "step_ms": 0.5,
    }
    made = values.opened(values.profile(*FILES, **waits), files=800)
    found = first(made)
    assert (found.cause, found.resource) == ("many_small_files", "disk")
    assert found.share > 0.75
    assert "no_workers_latency_bound" not in causes(made)


def test_large_files_are_not_small() -> None:
    made = values.opened(values.profile(*FILES, **ROWS), files=800, size=3_000_000)
    assert "many_small_files" not in causes(made)


def test_small_files_of_little_cost_are_no_trouble() -> None:
    made = values.profile((values.OPEN_LINE, 2), (values.USER, 98), **ROWS)
    assert "many_small_files" not in causes(values.opened(made, files=800))


@pytest.mark.parametrize("row", [values.NPZ, values.SEEK, values.H5_READ, values.READ_LINE])
def test_far_more_is_read_than_used(row: tuple[Frame, ...]) -> None:
    made = values.profile((row, 40), (values.USER, 5), read_bytes=5_000_000, **ROWS)
    found = first(values.opened(made, files=1, opens=800, size=5_000_000))
    assert found.cause == "read_amplification"
    assert "5,000 times" in " ".join(found.evidence) or "5.00 MB" in " ".join(found.evidence)


def test_what_is_read_once_and_becomes_a_small_sample_is_no_waste() -> None:
    made = values.profile((values.READ_LINE, 40), read_bytes=2_000_000, **ROWS)
    once = values.opened(made, files=1, opens=2, size=1_600_000_000)
    assert "read_amplification" not in causes(once)
    assert "read_amplification" not in causes(made)  # files that are not known


def test_unpacking_that_no_counter_shows_is_told_by_its_time() -> None:
    slow = values.profile((values.SEEK, 40), **{**ROWS, "fetch_ms": 160.0})
    quick = values.profile((values.SEEK, 40), **{**ROWS, "fetch_ms": 2.0})
    assert first(slow).cause == "read_amplification"
    assert "read_amplification" not in causes(quick)


def test_reading_about_what_is_used_is_no_trouble() -> None:
    photos: dict[str, Any] = {"batch_bytes": 8 * 150_000, "fetch_ms": 16.0, "step_ms": 0.5}
    made = values.profile((values.JPEG, 40), (values.READ_LINE, 5), read_bytes=180_000, **photos)
    assert "read_amplification" not in causes(made)


def test_a_file_that_is_loaded_once_is_not_read_for_every_item() -> None:
    made = values.profile((values.USER, 40), (values.READ_LINE, 1), read_bytes=500_000, **ROWS)
    assert "read_amplification" not in causes(values.opened(made, files=1, size=400_000_000))


def test_a_packed_picture_is_decoding_however_large_its_file() -> None:
    photos: dict[str, Any] = {"batch_bytes": 8 * 150_000, "fetch_ms": 16.0, "step_ms": 0.5}
    made = values.profile((values.JPEG, 95), (values.READ_LINE, 3), read_bytes=5_000_000, **photos)
    assert "read_amplification" not in causes(made)


def test_many_tiny_reads() -> None:
    items: dict[str, Any] = {"batch_bytes": 8 * 8_192, "fetch_ms": 8.0, "step_ms": 0.5}
    made = values.profile((values.READ_LINE, 40), read_bytes=8_192, read_calls=128, **items)
    assert first(made).cause == "tiny_reads"
    few = values.profile((values.READ_LINE, 40), read_bytes=8_192, read_calls=2, **items)
    assert "tiny_reads" not in causes(few)


def direct(switches: int, blocks: int) -> Profile:
    """32 reads of 2 kB a sample; switches and blocks of the device, a sample."""
    items: dict[str, Any] = {"batch_bytes": 8 * 65_536, "fetch_ms": 16.0, "step_ms": 0.5}
    states = {"cpu": 0.3, "disk": 0.7}
    made = values.profile((values.READ_LINE, 40), read_bytes=65_536, read_calls=32, states=states,
                          **items)  # fmt: skip
    fetches = tuple(
        row._replace(voluntary_switches=switches * row.samples, read_blocks=blocks * row.samples)
        for row in made.fetches
    )
    return builders.without(made, fetches=fetches)


def test_small_reads_that_each_wait_for_the_device_are_its_latency() -> None:
    assert first(direct(switches=32, blocks=128)).cause == "disk_latency"
    assert first(direct(switches=2, blocks=128)).cause == "tiny_reads"  # read ahead
    assert first(direct(switches=32, blocks=0)).cause == "tiny_reads"  # no device


WAITING: dict[str, Any] = {"states": {"cpu": 0.2, "disk": 0.8}, "step_ms": 0.5}


def test_waits_for_files_of_a_network_file_system_are_network() -> None:
    made = values.profile((values.READ_LINE, 40), workers=2, **WAITING)
    near = values.opened(made, files=4, size=10**9)
    far = values.opened(made, files=4, size=10**9, kind="nfs4")
    assert first(near).cause == "disk_latency"
    assert (first(far).cause, first(far).resource) == ("network_latency", "network")


def with_disks(made: Profile, machine: float, tree: float, busy: float) -> Profile:
    """`made` with the counters of all disks and of the loop's own tree, in bytes a second."""
    times = (made.start_ns, made.end_ns)
    length_s = made.wall_s
    totals = {
        "machine_disk_read_bytes": machine * length_s,
        "machine_disk_write_bytes": 0.0,
        "tree_read_bytes": tree * length_s,
        "tree_write_bytes": 0.0,
        "machine_disk_busy_ns": busy * made.wall_ns,
    }
    series = {
        name: Series(name, "bytes", "cumulative", "machine", times, (0.0, total))
        for name, total in totals.items()
    }
    return builders.without(made, series=MappingProxyType({**made.series, **series}))


def test_a_disk_that_others_keep_busy() -> None:
    made = values.profile((values.READ_LINE, 40), workers=2, **WAITING)
    assert first(with_disks(made, 200e6, 10e6, 0.95)).cause == "noisy_neighbour"


@pytest.mark.parametrize(
    ("machine", "tree", "busy"),
    [(200e6, 195e6, 0.95), (200e6, 10e6, 0.1), (1e6, 0.01e6, 0.9)],
    ids=["own traffic", "a disk with room", "hardly any traffic"],
)
def test_others_that_take_nothing_are_not_blamed(machine: float, tree: float, busy: float) -> None:
    made = values.profile((values.READ_LINE, 40), workers=2, **WAITING)
    assert "noisy_neighbour" not in causes(with_disks(made, machine, tree, busy))
