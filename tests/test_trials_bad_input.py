"""What users bring that no comparison was made for ends with a sentence, and leaves nothing."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from jupyter_ioscope.trials import pairs
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.forker import forker
from tests.leftovers import nothing_left_behind
from tests.trial_loaders import Pictures, Sleeping, make_jpegs

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        number = 0
        while True:
            yield torch.tensor(number)
            number += 1


class Growing(Sleeping):
    """Reads a file that is longer for every loader that begins."""

    def __init__(self, path: Path) -> None:
        super().__init__(40, 0.0)
        self.path = str(path)

    def __getitem__(self, index: int) -> Any:
        if index == 0:
            with open(self.path, "a") as file:
                file.write("x" * 100)
        return torch.tensor([index, os.stat(self.path).st_size])


def test_an_endless_stream_is_timed_for_a_while() -> None:
    one, two = (DataLoader(Endless(), batch_size=16) for _ in range(2))
    found = compare(one, two, budget_s=2)
    assert found.pairs >= 1
    assert found.same_data.verdict == "identical"


def test_a_loader_of_three_batches_is_timed_over_whole_epochs() -> None:
    loader = DataLoader(Sleeping(12, 0.001), batch_size=4)
    found = compare(loader, toggles=["workers=1"], budget_s=3)
    assert {trial.samples % 12 for trial in found.trials} == {0}
    assert any("whole epochs" in note for note in found.notes)


def test_data_that_change_between_the_arms_are_not_called_the_same(tmp_path: Path) -> None:
    loader = DataLoader(Growing(tmp_path / "grows"), batch_size=4)
    (tmp_path / "grows").write_text("x")
    found = compare(loader, toggles=["workers=1"], budget_s=2)
    assert found.same_data.verdict in ("not_checked", "different")
    assert found.same_data.text


def test_a_disk_that_cannot_be_made_cold_is_told_by_what_was_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make_jpegs(tmp_path, number=8, size=(60, 40))
    monkeypatch.setattr(pairs, "evict", lambda paths: None)
    one, two = (DataLoader(Pictures(paths * 20, size=32), batch_size=4) for _ in range(2))
    found = compare(one, two, budget_s=2, cache="cold")
    assert "at most 100\N{NO-BREAK SPACE}% of 8 files" in found.cache_text


def test_an_interrupt_in_the_middle_ends_the_trials_too(monkeypatch: pytest.MonkeyPatch) -> None:
    forker()  # it stays for the life of the process
    one, two = DataLoader(Sleeping(), 4), DataLoader(Sleeping(), 4)
    with tempfile.TemporaryDirectory() as folder, nothing_left_behind(patience_s=20):
        monkeypatch.setattr(tempfile, "tempdir", folder)
        timer = threading.Timer(0.8, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compare(one, two, budget_s=60)
        timer.join()
