"""What another setting would bring: predictions against an independent simulation of it."""

from __future__ import annotations

import dataclasses
import time

import pytest

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.loader_model import Piece, samples_per_s
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.diagnosis.what_if import WhatIf
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.prediction import Setting
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Fetch
from tests import builders
from tests.seen_stacks import library, with_stacks

MS = 1e6
LATENCY = {"cpu": 0.1, "network": 0.9}


def measured(profile: Profile) -> float:
    found = throughput_of(Facts(profile))
    assert found is not None
    return found.samples_per_s


@pytest.mark.parametrize("fetch_cv", [0.1, 0.6])
@pytest.mark.parametrize("setting", [Setting(1, 2), Setting(3, 2), Setting(4, 4), Setting(8, 1)])
@pytest.mark.parametrize("step_ms", [1.0, 6.0])
def test_predictions_agree_with_a_simulation_of_the_other_setting(
    setting: Setting, step_ms: float, fetch_cv: float
) -> None:
    made = {"states": LATENCY, "step_ms": step_ms, "fetch_cv": fetch_cv, "cpus": 16}
    seen = builders.profile(workers=2, batches=240, seed=1, **made)  # type: ignore[arg-type]
    other = builders.profile(
        workers=setting.workers,
        prefetch=setting.prefetch,
        batches=400,
        seed=2,
        **made,  # type: ignore[arg-type]
    )
    predicted = WhatIf(Facts(seen)).predict(setting)
    assert predicted.samples_per_s == pytest.approx(measured(other), rel=0.12)
    assert predicted.low < predicted.samples_per_s < predicted.high


def test_the_recorded_setting_is_predicted_as_it_was_measured() -> None:
    seen = builders.profile(workers=2, states=LATENCY)
    what_if = WhatIf(Facts(seen))
    assert what_if.predict(what_if.current).samples_per_s == pytest.approx(measured(seen))


def piece(cpu_ms: float = 0.0, off_ms: float = 0.0, step_ms: float = 0.0) -> Piece:
    return Piece(8, cpu_ms * MS, off_ms * MS, 0, 0, 0, step_ms * MS, 0, 0)


def test_cores_bound_what_workers_bring() -> None:
    busy = [piece(cpu_ms=10)] * 50
    rates = [samples_per_s(busy, Setting(n), cores=2) for n in (1, 2, 4, 8)]
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)
    assert rates[2] == pytest.approx(rates[1], rel=0.02)
    assert rates[3] == pytest.approx(rates[1], rel=0.02)


def test_waits_overlap_beyond_the_cores() -> None:
    waiting = [piece(off_ms=10)] * 50
    one, eight = (samples_per_s(waiting, Setting(n), cores=2) for n in (1, 8))
    assert eight == pytest.approx(8 * one, rel=0.02)


def test_prefetch_absorbs_variance_and_nothing_else() -> None:
    even = [piece(off_ms=10, step_ms=4)] * 60
    uneven = [piece(off_ms=50 if k % 12 == 0 else 6, step_ms=4) for k in range(60)]
    gains = [
        samples_per_s(rows, Setting(2, 8), 4) / samples_per_s(rows, Setting(2, 1), 4)
        for rows in (even, uneven)
    ]
    assert gains[0] < 1.05 < gains[1]


def test_batches_out_of_order_do_not_wait_behind_a_slow_one() -> None:
    rows = [piece(off_ms=200 if k % 16 == 0 else 5, step_ms=1) for k in range(96)]
    ordered = samples_per_s(rows, Setting(4, 2, in_order=True), cores=8)
    free = samples_per_s(rows, Setting(4, 2, in_order=False), cores=8)
    assert free > 1.3 * ordered


def test_a_loop_without_workers_adds_step_and_fetch() -> None:
    rows = [piece(cpu_ms=3, off_ms=4, step_ms=5)] * 10
    assert samples_per_s(rows, Setting(0), cores=1) == pytest.approx(8 / 0.012)


def test_workers_that_were_never_seen_are_predicted_with_more_doubt() -> None:
    alone = WhatIf(Facts(builders.profile(workers=0, states=LATENCY)))
    seen = WhatIf(Facts(builders.profile(workers=2, states=LATENCY)))

    def width(what_if: WhatIf, workers: int) -> float:
        found = what_if.predict(Setting(workers))
        return found.high / found.low

    assert alone.predict(Setting(4)).samples_per_s > 1.5 * alone.measured.samples_per_s
    assert width(alone, 4) > width(seen, 4)


def test_other_programs_leave_less_to_gain() -> None:
    quiet = builders.profile(workers=2, cpu_fraction=1.0, cpus=4)
    busy = builders.profile(workers=2, cpu_fraction=1.0, cpus=4, others_cores=2.0)
    gains = [WhatIf(Facts(row)).ratio(Setting(4)) for row in (quiet, busy)]
    assert gains[0] > gains[1] + 0.1


def test_without_workers_a_hand_over_that_no_model_repeats_is_not_counted_twice() -> None:
    fits = WhatIf(Facts(builders.profile(workers=2, cpu_fraction=1.0, batches=240)))
    slower = WhatIf(Facts(builders.profile(workers=2, cpu_fraction=1.0, batches=240)))
    slower.measured = dataclasses.replace(
        slower.measured, samples_per_s=fits.measured.samples_per_s / 4
    )
    alone, like, more = Setting(0), slower.predict(Setting(0)), slower.predict(Setting(4))
    assert like.samples_per_s == pytest.approx(fits.predict(alone).samples_per_s, rel=0.1)
    assert slower.ratio(Setting(4)) == fits.ratio(Setting(4))
    # and the doubt is larger where the model does not repeat what was recorded
    assert like.high / like.low > 2 * fits.predict(alone).high / fits.predict(alone).low
    assert more.high / more.low > 2 * fits.predict(Setting(4)).high / fits.predict(Setting(4)).low


def stream_of_two(shards: str = "", busy: int = 1) -> WhatIf:
    """Of a stream with two workers, of which so many delivered."""
    seen = builders.profile(workers=busy, states=LATENCY, batches=240, step_ms=0.5)
    info = dataclasses.replace(
        seen.loaders[0],
        num_workers=2,
        dataset_kind="iterable",
        facts=(("shards", shards),) if shards else (),
    )
    return WhatIf(Facts(builders.without(seen, loaders=(info,))))


@pytest.mark.parametrize("shards", ["1", ""])
def test_of_a_stream_of_one_shard_no_setting_of_its_workers_is_promised_anything(
    shards: str,
) -> None:
    what_if = stream_of_two(shards)
    for setting in (Setting(2, 8), Setting(2, 2, in_order=False), Setting(8), Setting(1)):
        assert what_if.ratio(setting) == pytest.approx(1.0, abs=0.05)


def test_more_workers_help_a_stream_as_far_as_its_shards_go() -> None:
    what_if = stream_of_two("3", busy=2)
    assert what_if.ratio(Setting(3)) > 1.2
    assert what_if.ratio(Setting(8)) == what_if.ratio(Setting(3))
    # a worker that was seen to deliver has something to do, whatever the dataset says
    assert stream_of_two("1", busy=2).with_work(4) == 2
    assert stream_of_two("", busy=2).with_work(4) == 4


def test_without_records_of_fetches_nothing_is_predicted() -> None:
    seen = builders.with_workers_before_profile(builders.profile(workers=2))
    with pytest.raises(NotMeasuredError):
        WhatIf(Facts(seen))


def test_a_grid_is_answered_quickly() -> None:
    what_if = WhatIf(Facts(builders.profile(workers=2, states=LATENCY, batches=600)))
    start = time.process_time()
    for workers in (1, 2, 3, 4, 6, 8):
        for prefetch in (1, 2, 4, 8):
            what_if.predict(Setting(workers, prefetch))
    one = (time.process_time() - start) / 24
    start = time.process_time()
    sum(range(3_000_000))
    assert one < 5 * (time.process_time() - start)


def test_what_a_worker_spends_on_shared_memory_goes_with_the_workers() -> None:
    made = builders.profile(workers=2, cpu_fraction=1.0, fetch_ms=1.0, step_ms=0.01, batches=400)
    fetch = library("_MapDatasetFetcher.fetch", "torch/utils/data/_utils/fetch.py", 57)
    join = library("collate_tensor_fn", "torch/utils/data/_utils/collate.py", 273)
    sharing = library("_StorageBase._new_shared", "torch/storage.py", 414)
    rows = [("worker", 0, (fetch, join), 20), ("worker", 0, (fetch, join, sharing), 60)]
    plain, shared = (
        WhatIf(Facts(with_stacks(made, seen))).predict(Setting(0)) for seen in (rows[:1], rows)
    )
    assert shared.samples_per_s == pytest.approx(4 * plain.samples_per_s, rel=0.1)
    # without stacks it is not known, and the interval says so
    unseen = WhatIf(Facts(builders.without(made, stacks=None, fetches=_joining(made, 0.8))))
    known = WhatIf(Facts(builders.without(made, stacks=None, fetches=_joining(made, 0.0))))
    doubts = [row.predict(Setting(0)).high / row.predict(Setting(0)).low for row in (unseen, known)]
    assert doubts[0] > 2 * doubts[1]


def _joining(made: Profile, part: float) -> tuple[Fetch, ...]:
    return tuple(row._replace(collate_ns=int(part * row.fetch_ns)) for row in made.fetches)
