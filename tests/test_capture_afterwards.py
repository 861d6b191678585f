"""What a real profile tells beside its records: calls of lines, sizes of pictures, equal epochs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import jupyter_ioscope as ioscope
from jupyter_ioscope.capture import afterwards
from jupyter_ioscope.model.profile import Profile
from tests import builders

COUNT = 12
CPU_S = 2.5  # enough for sixty stacks, however fast or busy the machine


class Pictures(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.folder / f"{index}.jpg") as picture:
            small = picture.convert("RGB").resize((64, 64))
        return torch.from_numpy(np.array(small))


def joined(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(rows)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("pictures")
    noise = np.random.default_rng(0).integers(0, 256, (100, 150, 3), dtype=np.uint8)
    for index in range(COUNT):
        Image.fromarray(noise).resize((1200, 800)).save(folder / f"{index}.jpg")
    loader = DataLoader(Pictures(folder), batch_size=4, collate_fn=joined)
    epochs = 0
    with ioscope.profile() as profile:
        started_s = time.process_time()
        while epochs < 3 or time.process_time() - started_s < CPU_S:
            for _batch in loader:
                pass
            epochs += 1
    return profile.profile


@pytest.mark.timeout(300)
def test_sizes_of_the_pictures_that_fetches_opened(recorded: Profile) -> None:
    assert {(row.width, row.height) for row in recorded.images} == {(1200, 800)}
    assert len(recorded.images) == COUNT


@pytest.mark.timeout(300)
def test_epochs_in_a_fixed_order_have_equal_checksums(recorded: Profile) -> None:
    epochs = sorted({row.epoch for row in recorded.fetches})
    rows = [[row.digest for row in recorded.fetches if row.epoch == epoch] for epoch in epochs]
    assert len(rows) >= 3
    assert all(rows[0])
    assert rows[1:] == rows[:1] * (len(rows) - 1)
    assert len(set(rows[0])) == 1  # all pictures are the same, so are their batches


@pytest.mark.timeout(300)
def test_who_joins_the_items_is_a_fact_of_the_loader(recorded: Profile) -> None:
    assert recorded.loaders[0].fact("collate") == "own"


@pytest.mark.timeout(300)
def test_large_pictures_for_small_samples_are_found(recorded: Profile) -> None:
    from jupyter_ioscope.diagnosis.diagnose import diagnose

    assert "oversized_decode" in {row.cause for row in diagnose(recorded).findings}


def test_what_cannot_be_looked_up_becomes_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr(afterwards, "image_sizes", broken)
    made = afterwards.with_details(builders.profile(2))
    assert [gap.reason for gap in made.not_measured if "images" in gap.what] == ["RuntimeError: no"]
