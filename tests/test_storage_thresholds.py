"""From measured requests to a verdict: thresholds, ranges, and what they mean for a loader."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.model.observed import FileUse, ProcessUse
from jupyter_ioscope.model.storage import FileSystem, StorageCheck, Timing
from jupyter_ioscope.storage import for_loader, own_engine, thresholds
from jupyter_ioscope.views.storage import check_html, check_text
from tests import builders

PLACE = FileSystem("/d", "/", "x", "X", "local", "", False, (), ())


def timing(name: str, bytes_per_s: float = 0.0, latency_s: float = 1e-4, n: int = 500) -> Timing:
    size = 1 << 20 if name.startswith("sequential") else 4096
    return Timing(name, n, size, 1.0, bytes_per_s, latency_s, latency_s, latency_s, "device", "x")


def test_a_file_too_small_for_large_requests_is_not_judged_as_a_stream() -> None:
    row = timing("sequential read", 79e6)._replace(request_bytes=4096)
    assert not [one for one in thresholds.judge((row,), 0.0) if one.what == "sequential read"]


@pytest.mark.parametrize(
    ("bytes_per_s", "open_s", "random_s", "iowait", "verdict"),
    [
        (450e6, 99e-6, 1e-3, 0.0, "healthy"),
        (449e6, 99e-6, 1e-3, 0.0, "degraded"),
        (199e6, 99e-6, 1e-3, 0.0, "dangerous"),
        (900e6, 101e-6, 1e-3, 0.0, "degraded"),
        (900e6, 1.1e-3, 1e-3, 0.0, "dangerous"),
        (900e6, 99e-6, 13e-3, 0.0, "degraded"),
        (900e6, 99e-6, 16e-3, 0.0, "dangerous"),
        (900e6, 99e-6, 1e-3, 0.06, "degraded"),
        (900e6, 99e-6, 1e-3, 0.16, "dangerous"),
        (900e6, 99e-6, 1e-3, -1.0, "healthy"),
    ],
)
def test_thresholds_are_those_of_their_sources(
    bytes_per_s: float, open_s: float, random_s: float, iowait: float, verdict: str
) -> None:
    rows = (
        timing("sequential read", bytes_per_s),
        timing("open", latency_s=open_s),
        timing("random read", latency_s=random_s),
    )
    judged = thresholds.judge(rows, iowait)
    assert thresholds.overall(judged) == verdict
    assert bool(thresholds.reasons(judged)) == (verdict != "healthy")


def test_what_the_page_cache_answered_is_not_judged() -> None:
    cached = timing("sequential read", 9e9)._replace(answered_by="page_cache")
    judged = thresholds.judge((cached, timing("open")), 0.0)
    assert thresholds.overall(judged) == "unknown"


def test_few_slow_requests_are_judged_by_their_median() -> None:
    rows = (timing("random read", n=20)._replace(p50_s=5e-3, p99_s=40e-3),)
    assert thresholds.overall(thresholds.judge(rows, 0.0)) == "healthy"


def moments(*latencies_ms: float) -> Timing:
    """Random reads that took so long, in this order."""
    took = [int(value * 1e6) for value in latencies_ms]
    found = own_engine.timing("random read", took, 4096)
    return found._replace(answered_by="device")


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (moments(*[0.1] * 500), "healthy"),
        (moments(*[0.1] * 400, *[20.0] * 20, *[0.1] * 80), "unknown"),  # one bad moment
        (moments(*([0.1] * 19 + [20.0]) * 25), "dangerous"),  # all the time
        (moments(*([0.1] * 19 + [13.0]) * 20, *([0.1] * 4 + [20.0]) * 20), "degraded"),  # at least
        (moments(*[0.1] * 100, 20.0, 20.0), "unknown"),  # too few to know a 99th percentile
        (moments(0.1, 16.0, 16.0, 16.0), "unknown"),
        (moments(16.0, 16.0, 16.0, 16.0), "dangerous"),
    ],
)
def test_storage_is_only_as_bad_as_all_of_what_the_requests_can_tell(
    row: Timing, verdict: str
) -> None:
    judged = thresholds.judge((row,), 0.0)
    assert thresholds.overall(judged) == verdict
    told = " ".join(thresholds.reasons(judged))
    assert ("it cannot be told whether that is healthy" in told) == (verdict == "unknown")
    assert (" as far as this can tell" in told) == (verdict in ("unknown", "degraded"))


def test_what_others_wrote_a_moment_before_is_no_fault_of_the_storage() -> None:
    row = timing("random read")
    assert thresholds.overall(thresholds.judge((row,), 0.2, 0.0)) == "healthy"
    assert thresholds.overall(thresholds.judge((row,), 0.2, 0.16)) == "dangerous"


def test_a_stream_held_up_once_is_not_called_slow() -> None:
    took = [2_000_000] * 9 + [40_000_000]
    once = own_engine.timing("sequential read", took, 1 << 20)._replace(answered_by="device")
    assert once.bytes_per_s < 200e6
    (judged,) = [r for r in thresholds.judge((once,), 0.0) if r.what == "sequential read"]
    assert judged.verdict == "unknown"
    assert own_engine.timing("sequential read", [], 1 << 20).bytes_per_s_range == (0.0, 0.0)


def test_a_profile_says_what_the_numbers_mean_for_its_loader() -> None:
    profile = builders.profile()
    rows = (timing("sequential read", 500e6), timing("random read"), timing("open"))
    told = list(for_loader.sentences(profile, "/data", "/", rows))
    assert told
    assert for_loader.request_s(4096 + 500_000, rows[0], rows[1]) == pytest.approx(1.1e-3)


@pytest.mark.parametrize(("read_bytes", "from_memory"), [(8_000, True), (8_000_000, False)])
def test_a_loader_whose_samples_are_in_memory_is_not_said_to_read_storage(
    read_bytes: int, from_memory: bool
) -> None:
    profile = builders.profile(2)
    count = sum(row.samples for row in profile.fetches)
    uses = tuple(
        ProcessUse(row.pid, row.worker, row.entered_ns, row.left_ns, 50, read_bytes, 0, 0, 0, 0,
                   -1, -1, 5, 1024)
        for row in profile.workers
    )  # fmt: skip
    profile = dataclasses.replace(profile, processes=uses, files=())
    rows = (timing("sequential read", 500e6), timing("random read"), timing("open"))
    told = " ".join(for_loader.sentences(profile, "/data", "/", rows))
    assert 2 * (8_000_000 - 1_000_000) / count > 64
    assert ("lies in memory, or in files mapped into it" in told) == from_memory
    assert ("This loader reads" in told) != from_memory


def test_files_of_a_loader_on_several_mounts_are_told() -> None:
    profile = builders.profile()
    use = FileUse("/dev/shm/a", 1, 0, "fetch", "r", 1, 10, "tmpfs")
    both = dataclasses.replace(profile, files=(use, use._replace(path="/b")))
    rows = (timing("sequential read", 500e6), timing("random read"))
    told = list(for_loader.sentences(both, "/dev/shm", "/dev/shm", rows))
    assert told[0] == "1 of the 2 files that the loader opened lie in /dev/shm."
    assert "2 mounts" in told[1]


def test_the_views_give_verdict_and_reasons_and_escape() -> None:
    found = StorageCheck(
        "/d<script>", "folder", True, PLACE, "dangerous", ("slow <b>", "also \x1b[31m red"),
        thresholds.judge((timing("sequential read", 1e6),), 0.0), (timing("sequential read", 1e6),),
        (), ("note",),
    )  # fmt: skip
    text = check_text(found)
    assert text.startswith("/d<script> (X) is dangerous: slow")
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "health script" in text
    html = check_html(found)
    assert "<script" not in html
    assert "<b>also" not in html
