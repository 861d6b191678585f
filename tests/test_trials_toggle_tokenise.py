"""Texts are tokenised a batch at a time only where that gives the same tokens."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.toggles._tokenising import TokenisedBatches
from jupyter_ioscope.trials.toggles.batched_tokenise import TOGGLE
from tests.toggle_trials import compiles, tried

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]
tokenizers = pytest.importorskip("tokenizers")
NUMBER = 60


def texts() -> list[str]:
    noise = random.Random(1)
    words = ["".join(noise.choices("abcdefg", k=noise.randint(2, 8))) for _ in range(200)]
    return [" ".join(noise.choices(words, k=noise.randint(3, 40))) for _ in range(NUMBER)]


@pytest.fixture(scope="module")
def tokeniser() -> Any:
    from tokenizers import models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE(unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["?"], show_progress=False)
    made.train_from_iterator(texts(), trainer)
    return made


class Texts(Dataset[Any]):
    def __init__(self, tokeniser: Any, way: str) -> None:
        self.tokeniser, self.way = tokeniser, way
        self.lines = texts()
        self.rows = [{"label": at, "line": line} for at, line in enumerate(self.lines)]

    def __len__(self) -> int:
        return NUMBER

    def __getitem__(self, index: int) -> Any:
        return getattr(self, self.way)(index)

    def padded(self, ids: list[int]) -> Any:
        return torch.tensor((ids + [0] * 64)[:64])

    def ids(self, index: int) -> Any:
        return self.padded(self.tokeniser.encode(self.lines[index]).ids)

    def rows_and_label(self, index: int) -> Any:
        row = self.rows[index]
        made = self.tokeniser.encode(row["line"], add_special_tokens=False)
        return self.padded(made.ids), self.padded([a for a, _ in made.offsets]), row["label"]

    def changed(self, index: int) -> Any:
        return self.padded(self.tokeniser.encode(self.lines[index].upper()).ids)

    def twice(self, index: int) -> Any:
        return self.ids(index) + self.ids(0)

    def pair(self, index: int) -> Any:
        return self.padded(self.tokeniser.encode(self.lines[index], self.lines[0]).ids)

    def called(self, index: int) -> Any:
        made = self.tokeniser(
            self.lines[index], truncation=True, max_length=40, padding="max_length"
        )
        return {key: torch.tensor(value) for key, value in made.items()}


@pytest.mark.parametrize("way", ["ids", "rows_and_label"])
@pytest.mark.parametrize("workers", [{}, {"num_workers": 1, "multiprocessing_context": "fork"}])
def test_tokens_are_the_same(tokeniser: Any, way: str, workers: dict[str, Any]) -> None:
    dataset = Texts(tokeniser, way)
    found = tried(TOGGLE, DataLoader(dataset, batch_size=8, **workers))
    assert found.same
    assert found.samples == NUMBER
    assert isinstance(found.spec.dataset, TokenisedBatches)
    assert dataset.tokeniser is tokeniser
    compiles(TOGGLE, found.spec)


def test_tokens_of_transformers_are_the_same(tokeniser: Any) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokeniser, unk_token="?", pad_token="?"
    )
    assert tried(TOGGLE, DataLoader(Texts(fast, "called"), batch_size=8)).same


def test_a_batch_is_one_call(tokeniser: Any) -> None:
    batched = tried(TOGGLE, DataLoader(Texts(tokeniser, "ids"), batch_size=8)).spec.dataset
    batched._proxy._noted.clear()
    samples = batched.__getitems__([5, 5, 7])
    assert batched._proxy._noted == []
    assert torch.equal(samples[2], batched.dataset[7])
    assert torch.equal(batched[9], batched.dataset[9])


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("changed", "not in a list of the dataset"),
        ("twice", "asks its tokeniser 2 times"),
        ("pair", "more than the tokens of one text"),
    ],
)
def test_other_uses_are_refused(tokeniser: Any, way: str, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(TOGGLE, DataLoader(Texts(tokeniser, way), batch_size=8))


def test_a_dataset_without_a_tokeniser_is_refused() -> None:
    with pytest.raises(TrialError, match="holds no tokeniser"):
        tried(TOGGLE, DataLoader(list(range(9)), batch_size=3))  # type: ignore[arg-type]
