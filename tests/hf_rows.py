"""Hugging Face datasets for the tests of toggles; importable, so that spawned workers find them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

datasets.disable_progress_bars()


def table(folder: Path, rows: int = 600, width: int = 48) -> Any:
    """A memory-mapped dataset with whole numbers, fractions and texts."""
    drawn = np.random.default_rng(3)
    made = datasets.Dataset.from_dict(
        {
            "tokens": drawn.integers(0, 30_000, (rows, width)).tolist(),
            "weight": drawn.standard_normal(rows).tolist(),
            "title": [f"row {number}" for number in range(rows)],
        }
    )
    made.save_to_disk(str(folder / "rows"))
    return datasets.load_from_disk(str(folder / "rows"))


def pictures(folder: Path, rows: int = 120, side: int = 192) -> Any:
    """JPEG files with a label each; every row access decodes the picture."""
    drawn = np.random.default_rng(5)

    def encoded() -> dict[str, Any]:
        out = io.BytesIO()
        pixels = drawn.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((side, side)).save(out, "JPEG")
        return {"bytes": out.getvalue(), "path": None}

    features = datasets.Features(
        {
            "photo": datasets.Image(),
            "label": datasets.Value("int64"),
            "name": datasets.Value("string"),
        }
    )
    made = datasets.Dataset.from_dict(
        {
            "photo": [encoded() for _ in range(rows)],
            "label": list(range(rows)),
            "name": [f"p{number}" for number in range(rows)],
        },
        features=features,
    )
    made.save_to_disk(str(folder / "pictures"))
    return datasets.load_from_disk(str(folder / "pictures"))


def labels_only(rows: list[Any]) -> torch.Tensor:
    return torch.tensor([row["label"] for row in rows])


def tokens_only(rows: list[Any]) -> torch.Tensor:
    return torch.tensor([row["tokens"] for row in rows])


def brightness(rows: list[Any]) -> torch.Tensor:
    return torch.tensor([row["photo"].getpixel((3, 3))[0] for row in rows])


class ColumnByColumn(Dataset[Any]):
    """Windows of rows, asked for one column after the other."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows.with_format("numpy")

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> Any:
        wanted = [index, index + 1, index + 2]
        return self.rows["tokens"][wanted], self.rows["weight"][wanted]


class Loop:
    """What a loop over batches of a dataset may iterate."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows.iter(batch_size=50))
