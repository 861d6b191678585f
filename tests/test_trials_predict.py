"""What toggles are expected to bring, from a profile alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from torch.utils.data import DataLoader, IterableDataset

from jupyter_ioscope.diagnosis.what_if import WhatIf
from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.trials.offers import fitted
from jupyter_ioscope.trials.predict import Predictor
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggle import Toggle, chosen
from tests import builders, work_values
from tests.trial_loaders import Sleeping


def draft_decode(decoding: int, other: int, **settings: Any) -> Prediction:
    """Of a loader whose fetches were seen in the decoder so often, and so often elsewhere."""
    profile = work_values.profile(
        (work_values.JPEG, decoding), (work_values.USER, other), step_ms=0.1, **settings
    )
    spec = spec_of(DataLoader(Sleeping(), num_workers=int(bool(settings.get("workers")))))
    found = Predictor(profile, spec).one(chosen("draft_decode")[0])
    assert found is not None
    return found


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("other", ["run_queue", "network"])
def test_a_bound_holds_where_fetches_spend_most_of_their_time_off_the_cpu(
    other: str, workers: int
) -> None:
    found = draft_decode(400, 600, states={"cpu": 0.3, other: 0.7}, workers=workers)
    # 40 % of the time in fetches is seen in the decoder: without it, the rest takes 60 %
    assert math.isnan(found.ratio)
    assert 1 / (1 - 0.40) < found.high < 1 / (1 - 0.50)


def test_a_bound_grows_with_what_is_seen_in_the_work() -> None:
    some, most = (
        draft_decode(times, 1000 - times, states={"cpu": 1.0}).high for times in (200, 700)
    )
    assert 1 / (1 - 0.2) < some < 1 / (1 - 0.3)
    assert 1 / (1 - 0.7) < most < 1 / (1 - 0.85)


def test_where_nearly_everything_could_go_no_bound_is_made_up() -> None:
    profile = work_values.profile((work_values.JPEG, 1000), step_ms=0.0)
    spec = spec_of(DataLoader(Sleeping()))
    assert Predictor(profile, spec).one(chosen("draft_decode")[0]) is None


def named(cause: str, share: float, high: float, **settings: Any) -> Prediction:
    """Of a loader whose diagnosis names the toggle in a finding."""
    profile = work_values.profile((work_values.JPEG, 800), (work_values.USER, 200), step_ms=0.1)
    finding = Finding(
        cause, "worker_cpu", "Pictures are decoded too large", share, share / 2, high, 1.0, (), "",
        toggles=("draft_decode",),
    )  # fmt: skip
    spec = spec_of(DataLoader(Sleeping()))
    found = Predictor(profile, spec, (finding,)).one(chosen("draft_decode")[0])
    assert found is not None
    return found


def test_a_finding_that_names_the_toggle_says_what_it_brings() -> None:
    found = named("oversized_decode", share=0.4, high=0.5)
    assert (found.ratio, found.low, found.high) == pytest.approx((1 / 0.6, 1.0, 2.0))
    assert "pictures are decoded too large" in found.how
    # a cause whose rule says what it takes, not what the fix brings, is a bound
    found = named("decode_cpu", share=0.4, high=0.5)
    assert math.isnan(found.ratio)
    assert found.high == pytest.approx(2.0)


def test_no_finding_promises_more_than_the_work_takes() -> None:
    found = named("oversized_decode", share=0.95, high=0.98)
    assert math.isnan(found.ratio)
    assert found.high < 10


LATENCY: dict[str, Any] = {"states": {"cpu": 0.1, "network": 0.9}, "batches": 240, "cpus": 8}


def predictor(workers: int = 2, **settings: Any) -> Predictor:
    profile = builders.profile(workers, **{**LATENCY, **settings})
    return Predictor(profile, spec_of(DataLoader(Sleeping(), num_workers=workers)))


def test_more_workers_are_predicted_to_overlap_waits_and_prefetch_is_not() -> None:
    found = predictor().all(chosen(["workers=4", "prefetch=8"]))
    assert 1.5 < found["workers=4"].low < found["workers=4"].ratio < found["workers=4"].high < 2.6
    assert found["workers=4"].ratio > 1.8
    assert found["prefetch=8"].ratio == pytest.approx(1.0, abs=0.05)


class OneShard(IterableDataset[int]):
    num_shards = 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


def test_workers_without_a_shard_are_predicted_to_bring_nothing() -> None:
    profile = builders.profile(1, **LATENCY)
    found = Predictor(profile, spec_of(DataLoader(OneShard(), num_workers=1)))
    more = found.all(chosen(["workers=4"]))["workers=4"]
    assert more.ratio == pytest.approx(1.0, abs=0.05)
    two = spec_of(DataLoader(OneShard(), num_workers=2))
    assert "the only shard" in chosen("in_order")[0].refusal(two)


def test_settings_together_are_one_prediction_and_bounds_are_not_added_up() -> None:
    model = predictor()
    both = model.together(chosen(["workers=4", "prefetch=4"]))
    assert both is not None
    assert both.ratio > 1.7
    assert model.together(chosen(["workers=4", "draft_decode"])) is None


def test_workers_that_stay_save_the_later_start_ups() -> None:
    often = predictor(epochs=6, batches=20, start_ms=200.0)
    (toggle,) = chosen("persistent_workers")
    found = often.one(toggle)
    assert found is not None
    assert 1.1 < found.low < found.ratio < found.high
    assert predictor(epochs=1).one(toggle) is None


def test_the_number_of_workers_offered_ends_where_the_cores_do() -> None:
    waits, computes = predictor(2), predictor(2, states={"cpu": 1.0}, cpus=4)
    busy = predictor(2, states={"cpu": 1.0}, cpus=4, others_cores=3.0)
    assert (waits.best_workers() or 0) > 8
    assert 3 <= (computes.best_workers() or 0) <= 5
    # more workers would take more from the others: nothing to advise
    assert (busy.best_workers() or 0) <= 5


def test_the_name_alone_means_the_number_that_fits_the_profile() -> None:
    waits = Predictor(
        builders.profile(0, **{**LATENCY, "cpus": 2}), spec := spec_of(DataLoader(Sleeping()))
    )
    picked = chosen(["workers", "prefetch"])
    assert [row.name for row in fitted(picked, spec, waits)] == ["workers=8", "prefetch"]
    # a number of the user's own stays, and without a profile there is none
    (own,) = fitted(chosen(["workers=3"]), spec, waits)
    assert own.name == "workers=3"
    assert fitted(picked, spec, None) == picked


def test_a_recording_compares_the_number_that_it_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def compare(loader: Any, toggles: tuple[Toggle, ...], **rest: Any) -> Any:
        asked.append(tuple(row.name for row in toggles))
        raise TrialError("enough")

    monkeypatch.setattr("jupyter_ioscope.trials.compare.compare", compare)
    recording = Recording.of(builders.profile(0, **{**LATENCY, "cpus": 2}))
    recording.loaders = (DataLoader(Sleeping()),)
    recording._numbered = {0: recording.loaders[0]}
    offered = next(row.name for row in recording.offers if row.name.startswith("workers"))
    with pytest.raises(TrialError, match="enough"):
        recording.compare(["workers"])
    assert asked == [(offered,)] == [("workers=8",)]


@pytest.mark.parametrize(("batches", "best"), [(10, 2), (300, 3)])
def test_a_little_more_counts_only_in_a_long_replay(
    monkeypatch: pytest.MonkeyPatch, batches: int, best: int
) -> None:
    """As measured on two cores: of 10 batches, 3 workers ran out 7 % sooner than 2."""
    monkeypatch.setattr(
        WhatIf, "ratio", lambda _self, row: {0: 1.0, 1: 1.0, 2: 1.994}.get(row.workers, 2.13)
    )
    assert predictor(2, cpus=2, batches=batches).best_workers() == best


def test_what_is_never_done_cannot_be_saved() -> None:
    profile = work_values.profile((work_values.USER, 400), states={"cpu": 1.0})
    loader = DataLoader(Sleeping(), num_workers=1)
    (toggle,) = chosen("draft_decode")
    assert "no fetch was seen" in Predictor(profile, spec_of(loader)).idle(toggle)
    few = work_values.profile((work_values.USER, 10), states={"cpu": 1.0})
    assert Predictor(few, spec_of(loader)).idle(toggle) == ""


def test_nothing_is_promised_from_a_handful_of_batches() -> None:
    wanted = chosen(["workers=4", "draft_decode"])
    assert predictor(batches=5).all(wanted) == {}
    assert predictor(batches=50).all(wanted) != {}
