"""Loops over a Hugging Face dataset itself: their reports offer toggles, and buttons try them."""

from __future__ import annotations

import sys
import time
from typing import Any

import datasets
import pytest
from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.api import Recording
from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.interactive import ReportOnScreen
from jupyter_ioscope.trials.spec import spec_of
from tests.toggle_checks import checked

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def rows() -> Any:
    made = {"x": [[k] * 16 for k in range(4000)], "y": list(range(4000))}
    return datasets.Dataset.from_dict(made)


def recorded(loop: Any) -> Recording:
    with ioscope.profile(stacks=False) as profiled:
        for _ in loop:
            pass
    return profiled


def test_the_report_offers_what_fits_a_loop_over_rows(rows: Any) -> None:
    profiled = recorded(rows)
    assert getattr(profiled.main_loader, "dataset", None) is rows
    offers = {offer.name: offer for offer in profiled.offers}
    assert offers["hf_format_torch"].refusal == ""
    assert offers["hf_format_torch"].code.startswith("dataset = loader.with_format('torch')")
    assert "not a torch DataLoader" in offers["workers"].refusal
    assert "hf_format_torch" in str(profiled)


def test_a_loop_in_batches_is_compared_in_batches(rows: Any) -> None:
    with ioscope.profile(stacks=False) as profiled:
        for _ in rows.iter(batch_size=32):
            pass
    spec = spec_of(profiled.main_loader)
    assert (spec.direct, spec.rows_in_batch) == (True, 32)


def test_its_button_runs_a_comparison(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled = recorded(rows)
    kept: dict[str, Any] = {}

    def compare(own: Recording, toggles: Any, **more: Any) -> Any:
        assert own.main_loader is not None
        kept["toggles"] = toggles
        raise TrialError("enough")

    monkeypatch.setattr(Recording, "compare", compare)
    report = ReportOnScreen(profiled)
    report.command({"cmd": "run_ab", "toggles": ["hf_format_torch"]})
    until = time.monotonic() + 20
    while not kept and time.monotonic() < until:
        time.sleep(0.01)
    assert kept["toggles"] == ("hf_format_torch",)


def test_the_toggle_changes_the_loop_and_its_rows_stay_the_same(rows: Any) -> None:
    spec, same = checked(recorded(rows).main_loader, "hf_format_torch")
    assert spec.direct
    assert same.verdict in {"identical", "close"}
    assert same.samples_compared > 100


def test_the_loop_that_took_the_time_is_meant(rows: Any) -> None:
    loader = DataLoader(rows.select(range(64)), batch_size=16)
    with ioscope.profile(stacks=False) as profiled:
        for _ in rows.select(range(50)):
            pass
        for _ in loader:
            time.sleep(0.02)
    assert isinstance(profiled.main_loader, DataLoader)
    assert isinstance(profiled.loaders[0], DataLoader)  # DataLoaders come first
    assert len(profiled.loaders) == 2


def test_streams_are_offered_what_streams_can_have(rows: Any) -> None:
    profiled = recorded(rows.to_iterable_dataset())
    offers = {offer.name: offer for offer in profiled.offers}
    assert "streamed already" in offers["hf_format_torch"].refusal


def test_without_torch_a_report_of_such_a_loop_has_no_toggles(
    rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiled = recorded(rows)
    monkeypatch.delitem(sys.modules, "torch.utils.data")
    assert profiled.offers == ()


def test_such_a_loop_has_no_workers_to_tune(rows: Any) -> None:
    with pytest.raises(InputError, match="no workers to tune"):
        recorded(rows).tune(budget_s=5)
