"""Samples are cached where they come out the same each time, and fit."""

from __future__ import annotations

import gc
import os
import random
import time
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.sample_cache import CachedDataset
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles import sample_cache
from jupyter_ioscope.trials.toggles.sample_cache import TOGGLE
from tests.toggle_trials import compiles, runs, tried
from tests.trial_loaders import Augmented, Counting, Sleeping, random_states

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside, pytest.mark.usefixtures("short_trials")]


class Squares(Sleeping):
    def __getitem__(self, index: int) -> Any:
        time.sleep(self.wait_s)
        return {"x": torch.full((30, 30), float(index)), "name": f"sample {index}"}


class Own(Sleeping):
    """A random state of its own, which no seed reaches."""

    def __init__(self) -> None:
        super().__init__(40)
        self.noise = random.Random(3)

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index)[0] + self.noise.random()


class Lambdas(Sleeping):
    def __getitem__(self, index: int) -> Any:
        time.sleep(self.wait_s)
        return lambda: index


def shared_files() -> list[str]:
    gc.collect()
    fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return [path for path in fds if os.path.exists(path) and "memfd" in os.readlink(path)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "spawn"},
    ],
)
def test_a_loader_over_the_cache_gives_the_same_samples(options: dict[str, Any]) -> None:
    states, files = random_states(), shared_files()
    dataset = Squares(60, wait_s=0.001)
    loader = DataLoader(dataset, 8, shuffle=True, **options)
    found = tried(TOGGLE, loader)
    assert found.same
    cached = found.spec.dataset
    assert isinstance(cached, CachedDataset)
    if options.get("multiprocessing_context") != "spawn":
        stats = cached.stats()
        assert (stats.misses, stats.hits, stats.entries) == (60, 60, 60)
    assert loader.dataset is dataset
    assert vars(dataset) == {"length": 60, "wait_s": 0.001}
    assert random_states() == states
    del found, cached
    assert shared_files() == files


def test_its_code_gives_an_equal_loader() -> None:
    loader = DataLoader(Squares(20, wait_s=0.001), batch_size=4)
    found = tried(TOGGLE, loader)
    # As a comparison writes it, from what was learnt.
    from jupyter_ioscope.trials.code import code_of

    code = code_of(spec_of(loader), found.spec).replace("import ioscope", "")
    new = runs(code, loader=loader, DataLoader=DataLoader, ioscope=ioscope)["loader"]
    for _ in range(2):
        assert [b["x"].tolist() for b in new] == [b["x"].tolist() for b in loader]
    assert new.dataset.stats().hits == 20
    assert "limit_bytes=" in compiles(TOGGLE, spec_of(loader))


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (Augmented(40), "drawn at random"),
        (Own(), "drawn at random"),
        (Lambdas(40), "cannot be kept as bytes"),
        (Squares(10**8, wait_s=0.001), "more than half of the .* of memory that are free"),
        (torch.arange(200), "no longer than taking it out of a cache"),
        (Counting(40, shared=True), "no index"),
        (CachedDataset([1, 2], limit_bytes=1 << 20), "cached already"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_a_cache_would_be_wrong_or_useless_it_is_refused(dataset: Any, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(TOGGLE, DataLoader(dataset, batch_size=4))


def test_the_limit_follows_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_cache, "free_memory_bytes", lambda: 2_000_000)
    with pytest.raises(TrialError, match=r"more than half of the 2\.00.MB"):
        tried(TOGGLE, DataLoader(Squares(400, wait_s=0.001), batch_size=4))


def test_it_is_found_faster() -> None:
    loader = DataLoader(Squares(60, wait_s=0.004), batch_size=6, shuffle=True)
    found = compare(loader, toggles=["sample_cache"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 3
    assert "ioscope.CachedDataset(loader.dataset, limit_bytes=" in found.code
