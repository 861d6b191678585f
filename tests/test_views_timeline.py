"""Curves keep their peaks when thinned, and stand on one axis with readable numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from types import MappingProxyType

import pytest

from jupyter_ioscope.capture.probes._series import SERIES, gpu_series
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.views.quantities import _NAMES, Curve, batch_waits, curve, find, thinned
from jupyter_ioscope.views.timeline import ROWS, curves, timeline
from tests import builders
from tests.view_values import profile


def test_every_series_looked_for_is_one_that_a_probe_records() -> None:
    recorded = {*SERIES, *(info.name.replace("3", "*") for info in gpu_series(3))}
    assert {name for names in _NAMES.values() for name in names} <= recorded


@pytest.mark.parametrize("points", [2, 10, 120])
def test_thinning_keeps_ends_order_smallest_and_largest(points: int) -> None:
    rng = random.Random(points)
    times = sorted(rng.sample(range(10**9), 5000))
    full = Curve(times, [rng.random() for _ in times])
    few = thinned(full, points)
    assert len(few.values) <= points
    assert max(few.values) == max(full.values)
    assert min(few.values) == min(full.values)
    assert list(few.time_ns) == sorted(few.time_ns)
    pairs = set(zip(full.time_ns, full.values, strict=True))
    assert pairs.issuperset(zip(few.time_ns, few.values, strict=True))


def test_one_slow_batch_among_fifty_thousand_stays_visible() -> None:
    values = [1.0] * 50_000
    values[31_415] = 900.0
    assert max(thinned(Curve(range(50_000), values), 120).values) == 900.0


def test_few_readings_stay_as_they_are() -> None:
    few = Curve([1, 2, 3], [3.0, 1.0, 2.0])
    assert thinned(few, 120) is few


def test_readings_at_one_instant_do_not_break_thinning() -> None:
    same = Curve([5] * 1000, [float(i) for i in range(1000)])
    assert max(thinned(same, 10).values) == 999.0


def test_growth_of_cpu_time_is_in_cores_and_of_pressure_a_fraction() -> None:
    second = (0, 10**9, 2 * 10**9)
    cpu = Series("tree_cpu_ns", "ns", "cumulative", "tree", second, (0, 2e9, 3e9))
    assert curve(cpu).values == pytest.approx([2.0, 1.0])
    pressure = Series("psi_io_some_us", "us", "cumulative", "machine", second, (0, 5e5, 5e5))
    assert curve(pressure).values == pytest.approx([0.5, 0.0])
    read = Series("tree_read_bytes", "bytes", "cumulative", "tree", second, (0, 7e6, 7e6))
    assert curve(read).values == pytest.approx([7e6, 0.0])


def test_time_held_back_by_a_quota_has_a_row_where_there_was_some() -> None:
    def shown(*held_ns: float) -> list[str]:
        value = profile()
        steps = range(len(held_ns))
        times = tuple(value.start_ns + i * value.wall_ns // len(held_ns) for i in steps)
        held = Series("cgroup_throttled_ns", "ns", "cumulative", "cgroup", times, held_ns)
        series = MappingProxyType({**value.series, held.name: held})
        tracks = timeline(builders.without(value, series=series))["tracks"]
        return [track["title"] for track in tracks if track["key"] == "throttled"]

    assert shown(5e6, 5e6, 5e6) == []
    (title,) = shown(0.0, 0.5 * profile().wall_ns / 3, 0.5 * profile().wall_ns / 3)
    assert title.replace("\u00a0", " ") == "held by quota: mean 25 %, peak 50 %"


def test_a_counter_that_fell_back_did_not_run_backwards() -> None:
    fell = Series("tree_read_bytes", "bytes", "cumulative", "tree", (0, 10, 20), (5, 9, 1))
    assert min(curve(fell).values) >= 0


def test_gpus_are_told_apart_in_the_order_of_their_numbers() -> None:
    value = profile()
    ten = {
        f"gpu{n}_busy_fraction": Series("", "fraction", "gauge", "device", (0, 1), (n / 20, n / 20))
        for n in (10, 2, 0)
    }
    value = builders.without(value, series=MappingProxyType(ten))
    assert [series.mean() for series in find(value, "gpu")] == [0.0, 0.1, 0.5]
    labels = [track["label"] for track in timeline(value)["tracks"]]
    assert labels == ["batch wait", "GPU 0", "GPU 1", "GPU 2"]
    assert len({track["key"] for track in timeline(value)["tracks"]}) == 4


def test_tracks_lie_within_the_unit_square_in_time_order() -> None:
    tracks = timeline(profile())["tracks"]
    assert [t["key"] for t in tracks] == [
        "wait", "cpu", "io_wait", "disk_read", "gpu", "memory", "gpu_memory"
    ]  # fmt: skip
    for track in tracks:
        assert len(track["x"]) == len(track["y"]) > 0
        assert track["x"] == sorted(track["x"])
        assert all(0 <= v <= 1 for v in (*track["x"], *track["y"]))


def test_a_share_keeps_its_scale_so_that_little_looks_little() -> None:
    gpu = next(track for track in timeline(profile())["tracks"] if track["key"] == "gpu")
    assert set(gpu["y"]) == {0.17}
    assert gpu["value"].replace("\u00a0", " ") == "17 %"
    assert gpu["sumUp"] == "mean"


def test_waits_come_in_time_order_and_batches_without_series_still_show() -> None:
    value = builders.without(profile(), series=MappingProxyType({}))
    assert [track["key"] for track in timeline(value)["tracks"]] == ["wait"]
    backwards = builders.without(value, batches=value.batches[::-1])
    assert batch_waits(backwards) == batch_waits(value)


def test_an_empty_profile_has_an_empty_timeline() -> None:
    assert timeline(builders.empty_profile())["tracks"] == []


def test_readings_that_are_no_numbers_are_left_out_of_scale_and_sum() -> None:
    odd = Series("tree_pss_bytes", "bytes", "gauge", "tree", (0, 1, 2), (math.nan, 2e9, math.inf))
    value = builders.empty_profile(series=MappingProxyType({"tree_pss_bytes": odd}))
    (track,) = timeline(value)["tracks"]
    assert track["value"].replace("\u00a0", " ") == "2.00 GB"
    assert track["y"] == [0.0, 1.0, 0.0]


def test_every_row_has_a_unit_of_its_own_size() -> None:
    assert all(row.unit and row.unit_size > 0 for row in ROWS)


def test_memory_that_is_read_rarely_holds_while_resident_memory_does() -> None:
    times = (0, 10, 20, 30, 40)

    def row(*resident: float) -> tuple[Sequence[int], Sequence[float]]:
        series = {
            "tree_pss_bytes": Series("tree_pss_bytes", "bytes", "gauge", "tree", (5,), (7e8,)),
            "tree_rss_bytes": Series("tree_rss_bytes", "bytes", "gauge", "tree", times, resident),
        }
        value = builders.empty_profile(series=MappingProxyType(series))
        memory = next(one for one in ROWS if one.key == "memory")
        ((_, found),) = curves(value, memory)
        return list(found.time_ns), list(found.values)

    assert row(1e9, 1e9, 1.05e9, 1e9, 0.98e9) == ([5, 40], [7e8, 7e8])
    assert row(1e9, 1e9, 1e9, 2e9, 1e9) == ([5, 20], [7e8, 7e8])
    assert row(1e9, 2e9, 2e9, 2e9, 2e9) == ([5], [7e8])
