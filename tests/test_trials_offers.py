"""Every toggle is offered with what it does, what it costs, and why it may not apply."""

from __future__ import annotations

import math
from typing import Any

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.trials.offers import _use, _worth, offers
from jupyter_ioscope.trials.toggles import workers
from tests.trial_loaders import Sleeping


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cores_per_rank", lambda: 4)


def offered(suggested: tuple[str, ...] = (), **settings: Any) -> dict[str, Offer]:
    return {offer.name: offer for offer in offers(DataLoader(Sleeping(), **settings), suggested)}


def test_every_toggle_is_offered_with_its_cost() -> None:
    found = offered()
    assert {"workers", "prefetch", "persistent_workers", "draft_decode", "in_order"} <= set(found)
    assert all(offer.title and offer.effect and offer.cost for offer in found.values())


def test_without_workers_what_needs_them_is_refused() -> None:
    found = offered()
    assert found["workers"].refusal == ""
    assert "num_workers=4,  # was 0" in found["workers"].code
    assert "num_workers is 0" in found["prefetch"].refusal
    assert "num_workers is 0" in found["persistent_workers"].refusal
    assert found["prefetch"].code == ""


def test_with_all_workers_only_the_rest_applies() -> None:
    found = offered(num_workers=4, prefetch_factor=3)
    assert "num_workers is 4 already and this process may use 4 cores" in found["workers"].refusal
    assert (
        "where samples wait for a disk or a network, more can be right" in found["workers"].refusal
    )
    assert "prefetch_factor=6,  # was 3" in found["prefetch"].code
    assert "persistent_workers=True,  # was False" in found["persistent_workers"].code


def test_what_is_on_already_is_refused() -> None:
    found = offered(num_workers=1, persistent_workers=True)
    assert found["persistent_workers"].refusal == "persistent_workers is on already"


def test_draft_decode_needs_pillow_in_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    assert "img.draft" in offered()["draft_decode"].code
    monkeypatch.delitem(sys.modules, "PIL.Image")
    assert offered()["draft_decode"].refusal.startswith("no image is opened with PIL")


def test_a_refused_toggle_is_never_suggested() -> None:
    found = offered(("prefetch", "workers"))
    assert found["workers"].suggested
    assert not found["prefetch"].suggested


def test_something_else_than_a_loader_is_refused() -> None:
    with pytest.raises(InputError, match="must be a torch DataLoader"):
        offers(iter([1]))


def test_suggested_ones_come_first_and_in_their_order() -> None:
    order = list(offered(("sample_cache", "workers")))
    assert order[:2] == ["sample_cache", "workers"]
    assert next(iter(offered(("workers", "sample_cache")))) == "workers"


def expected(ratio: float, low: float, high: float) -> Offer:
    told = Prediction(ratio, low, high, "the model")
    return Offer("x", "x", "x", "x", refusal="", suggested=False, code="", predicted=told)


def test_a_wide_interval_around_nothing_is_no_gain() -> None:
    nothing = _use(expected(1.05, 0.55, 2.12), {})
    unknown = _use(expected(1, 1, 1)._replace(predicted=None), {})
    assert _use(expected(1.5, 0.9, 2.2), {}) < unknown < nothing
    assert _use(expected(math.nan, 1.0, 2.2), {}) < unknown  # "at most 2.2 times"


def test_what_would_bring_nothing_is_no_suggestion_beside_what_gains() -> None:
    def told(*made: Offer) -> list[bool]:
        return [one.suggested for one in _worth([one._replace(suggested=True) for one in made])]

    gain, nothing = expected(7.7, 5.9, 10.2), expected(1.0, 0.8, 1.2)
    unknown = nothing._replace(predicted=None)
    assert told(gain, nothing, unknown) == [True, False, True]
    assert told(nothing, unknown) == [True, True]  # the harm may be another than time
    assert [one.suggested for one in _worth([gain, unknown])] == [False, False]
