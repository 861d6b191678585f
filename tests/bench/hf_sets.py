"""The sets that `hf_steps` measures, and their loaders step by step."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

TEXT_ROWS, QUICK_TEXT_ROWS = 100_000, 10_000
PICTURES, QUICK_PICTURES = 1_200, 160
TOKENS, VOCABULARY = 128, 30_000
BATCH = {"text": 64, "pictures": 16}
SIDE = 224
WORKERS = 2
PHOTOS = Path(__file__).parents[2] / "notebooks"


def make_sets(folder: str, quick: bool) -> None:
    """The sets as they are, and the text set with the narrowest types that hold its numbers."""
    import datasets

    datasets.disable_progress_bars()
    rows = text_rows(QUICK_TEXT_ROWS if quick else TEXT_ROWS)
    rows.save_to_disk(f"{folder}/text")
    narrow = rows.features.copy()
    narrow["input_ids"] = datasets.Sequence(datasets.Value("int16"), length=TOKENS)
    narrow["attention_mask"] = datasets.Sequence(datasets.Value("int8"), length=TOKENS)
    rows.cast(narrow).save_to_disk(f"{folder}/text-narrow")
    pictures(QUICK_PICTURES if quick else PICTURES).save_to_disk(f"{folder}/pictures")


def text_rows(count: int) -> Any:
    """Made-up token ids, a mask, and a text of the same number of words."""
    import datasets
    import numpy as np

    rng = np.random.default_rng(0)
    ids = rng.integers(0, VOCABULARY, (count, TOKENS))
    lengths = rng.integers(TOKENS // 4, TOKENS + 1, (count, 1))
    mask = (np.arange(TOKENS) < lengths).astype(np.int64)
    words = np.array([f"word{number}" for number in range(1000)])
    texts = (
        " ".join(words[row[: length[0]] % 1000]) for row, length in zip(ids, lengths, strict=True)
    )
    columns = {"input_ids": list(ids), "attention_mask": list(mask), "text": list(texts)}
    return datasets.Dataset.from_dict(columns)


def pictures(count: int) -> Any:
    """Real photographs in a dataset of images, with their class."""
    import datasets

    sys.path.insert(0, str(PHOTOS))
    from photos import photo_folder

    folder = photo_folder()
    files = sorted(folder.glob("*/*.jpg"), key=lambda file: file.stem[-5:])[:count]
    names = sorted({file.parent.name for file in files})
    columns = {
        "image": [{"path": None, "bytes": file.read_bytes()} for file in files],
        "label": [names.index(file.parent.name) for file in files],
    }
    types = {"image": datasets.Image(), "label": datasets.Value("int64")}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(types))


def text_loader(folder: str, step: str) -> Any:
    import datasets
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler

    size = BATCH["text"]
    if step in ("list", "memory"):
        rows = datasets.load_from_disk(f"{folder}/text", keep_in_memory=step == "memory")
        # A list of samples in memory is what many a dataset class holds.
        samples: Any = rows.to_list() if step == "list" else rows
        return DataLoader(
            samples, size, shuffle=True, num_workers=WORKERS, collate_fn=collate_lists
        )
    if step == "mapped":
        rows = datasets.load_from_disk(f"{folder}/text").with_format("torch")
        return DataLoader(rows, size, shuffle=True, num_workers=WORKERS)
    # also: narrow types on disk, only the columns that are used, a batch from one call that gives
    # Arrow's own memory, and no worker where a batch takes less time than its hand-over
    rows = datasets.load_from_disk(f"{folder}/text-narrow")
    rows = rows.select_columns(["input_ids", "attention_mask"]).with_format("arrow")
    order = BatchSampler(RandomSampler(rows), size, drop_last=False)
    return DataLoader(rows, batch_size=None, sampler=order, collate_fn=tensors_of)


def tensors_of(table: Any) -> dict[str, Any]:
    """Columns of an Arrow table, lists of one length, as tensors of the usual type."""
    import numpy as np
    import torch

    made = {}
    for name in table.column_names:
        numbers = table.column(name).combine_chunks().flatten().to_numpy()
        made[name] = torch.from_numpy(numbers.reshape(len(table), -1).astype(np.int64))
    return made


def collate_lists(rows: list[dict[str, Any]]) -> dict[str, Any]:
    import torch

    numbers = {
        name: torch.tensor([row[name] for row in rows]) for name in rows[0] if name != "text"
    }
    return numbers | {"text": [row["text"] for row in rows]}


def picture_loader(folder: str, step: str) -> Any:
    import datasets
    from torch.utils.data import DataLoader

    path = f"{folder}/pictures"
    if step == "memory":
        rows = datasets.load_from_disk(path, keep_in_memory=True)
        collate: Any = collate_pictures
    elif step == "mapped":
        rows = datasets.load_from_disk(path).with_format("torch")
        collate = collate_tensors
    else:
        # also: encoded pictures are handed to a decoder that leaves out detail nobody sees
        rows = datasets.load_from_disk(path).cast_column("image", datasets.Image(decode=False))
        collate = partial(collate_pictures, draft=True)
    return DataLoader(
        rows, BATCH["pictures"], shuffle=True, num_workers=WORKERS, collate_fn=collate
    )


def collate_pictures(rows: list[dict[str, Any]], draft: bool = False) -> dict[str, Any]:
    import io

    import numpy as np
    import torch
    from PIL import Image

    made = []
    for row in rows:
        picture = Image.open(io.BytesIO(row["image"]["bytes"])) if draft else row["image"]
        if draft:
            picture.draft("RGB", (SIDE, SIDE))
        picture = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        made.append(torch.from_numpy(np.array(picture)).permute(2, 0, 1))
    return {"image": torch.stack(made), "label": torch.tensor([row["label"] for row in rows])}


def collate_tensors(rows: list[dict[str, Any]]) -> dict[str, Any]:
    import torch
    from torch.nn.functional import interpolate

    made = [
        interpolate(row["image"][None], (SIDE, SIDE), mode="bilinear", antialias=True)[0]
        for row in rows
    ]
    return {"image": torch.stack(made), "label": torch.stack([row["label"] for row in rows])}
