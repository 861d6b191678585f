"""Three steps of a Hugging Face loader: as people write it, mapped with torch's format, everything.

A text set and a set of photographs are written to disk once, in a temporary folder. Every run is a
process of its own: it loads the set and iterates one epoch in random order. Files are in the page
cache, for all steps. What is reported:

- samples a second, from the first batch to the end of the epoch;
- from the call that loads the set to the first batch, in seconds;
- the highest proportional set size (PSS) of the process and its workers, read from outside about
  ten times a second, and the part of it that is no file: mapped files count in a PSS once their
  pages were read, but the system takes those back when it needs memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from jupyter_ioscope.trials.tree import descendants
from tests.bench.measure import print_result

STEPS = ("default", "mapped", "everything")
TEXT_ROWS, QUICK_TEXT_ROWS = 100_000, 10_000
PICTURES, QUICK_PICTURES = 1_200, 160
RUNS, QUICK_RUNS = 3, 1
TOKENS, VOCABULARY = 128, 30_000
BATCH = {"text": 64, "pictures": 16}
SIDE = 224
WORKERS = 2
READ_EVERY_S = 0.1
TIMEOUT_S = 200
PHOTOS = Path(__file__).parents[2] / "notebooks"


def measure(quick: bool) -> dict[str, Any]:
    """Every step of both sets, `RUNS` times in turns."""
    with tempfile.TemporaryDirectory(prefix="ioscope-hf-") as folder:
        call(["make", folder, "quick" if quick else "whole"])
        sets = {
            kind: steps_of(kind, folder, QUICK_RUNS if quick else RUNS)
            for kind in ("text", "pictures")
        }
    return {"sets": sets, "workers": WORKERS}


def call(arguments: list[str]) -> None:
    subprocess.run(child_command(arguments), check=True, stdout=subprocess.DEVNULL, timeout=600)


def child_command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "tests.bench.hf_steps", "--child", *arguments]


def steps_of(kind: str, folder: str, runs: int) -> dict[str, Any]:
    """step: what -> (median, lowest, highest)"""
    found: dict[str, list[dict[str, float]]] = {step: [] for step in STEPS}
    for number in range(runs):
        for step in STEPS if number % 2 == 0 else reversed(STEPS):
            found[step].append(one_run(kind, step, folder))
    seen = {(row["samples"], row["checksum"]) for rows in found.values() for row in rows}
    assert len(seen) == 1, f"the steps did not deliver the same samples: {seen}"
    summary: dict[str, Any] = {
        step: {name: spread([row[name] for row in rows]) for name in rows[0]}
        for step, rows in found.items()
    }
    return summary | {"runs": runs, "samples": int(found["default"][0]["samples"])}


def spread(values: list[float]) -> list[float]:
    return [median(values), min(values), max(values)]


def one_run(kind: str, step: str, folder: str) -> dict[str, float]:
    """One process from load to the end of the epoch, its memory read meanwhile."""
    child = subprocess.Popen(
        child_command(["run", folder, kind, step]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", f"{kind}, {step}: the process did not start"
        before = tree_pss(child.pid)[0]  # the interpreter, torch and datasets
        child.stdin.write("go\n")
        child.stdin.flush()
        peak, peak_own = before, 0
        deadline = time.monotonic() + TIMEOUT_S
        while child.poll() is None and time.monotonic() < deadline:
            whole, own = tree_pss(child.pid)
            peak, peak_own = max(peak, whole), max(peak_own, own)
            with suppress(subprocess.TimeoutExpired):
                child.wait(READ_EVERY_S)
        assert child.returncode == 0, f"{kind}, {step}: ended with {child.returncode}"
        told: dict[str, float] = json.loads(child.stdout.read())
    finally:
        for pid in descendants(child.pid):
            with suppress(OSError):
                os.kill(pid, 9)
        child.kill()
        child.communicate()
    return told | {"before_bytes": before, "peak_bytes": peak, "peak_own_bytes": peak_own}


def tree_pss(pid: int) -> tuple[int, int]:
    """(PSS, the part that is no file's page) of a process and those below it, bytes."""
    whole = own = 0
    for member in (pid, *descendants(pid)):
        with suppress(OSError):  # it has just ended
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name == "Pss":
                    whole += int(rest.split()[0]) * 1024
                elif name in ("Pss_Anon", "Pss_Shmem"):
                    own += int(rest.split()[0]) * 1024
    return whole, own


# -- in a process of its own ------------------------------------------------------------------


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

    if step == "default":
        rows = datasets.load_from_disk(f"{folder}/text", keep_in_memory=True)
        return DataLoader(
            rows, BATCH["text"], shuffle=True, num_workers=WORKERS, collate_fn=collate_lists
        )
    if step == "mapped":
        rows = datasets.load_from_disk(f"{folder}/text").with_format("torch")
        return DataLoader(rows, BATCH["text"], shuffle=True, num_workers=WORKERS)
    # also: narrow types on disk, only the columns that are used, a batch from one call instead of
    # one call a row, and no worker where a batch takes less time than its hand-over
    rows = datasets.load_from_disk(f"{folder}/text-narrow")
    rows = rows.select_columns(["input_ids", "attention_mask"]).with_format("torch")
    order = BatchSampler(RandomSampler(rows), BATCH["text"], drop_last=False)
    return DataLoader(rows, batch_size=None, sampler=order)


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
    if step == "default":
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


def run(folder: str, kind: str, step: str) -> dict[str, float]:
    """One epoch; the checksum shows that every step delivered the same samples."""
    import datasets
    import torch
    from torch.utils.data import DataLoader  # noqa: F401  imported before the clock starts

    datasets.disable_progress_bars()
    torch.manual_seed(0)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    loader = {"text": text_loader, "pictures": picture_loader}[kind](folder, step)
    column = {"text": "input_ids", "pictures": "label"}[kind]
    first = begun = 0.0
    samples = checksum = after_first = 0
    for batch in loader:
        values = batch[column]
        if not begun:
            begun = time.perf_counter()
            first, after_first = begun - start, -len(values)
        samples += len(values)
        checksum += int(values.sum())
    rate = (samples + after_first) / (time.perf_counter() - begun)
    return {"first_s": first, "samples_per_s": rate, "samples": samples, "checksum": checksum}


def child(arguments: list[str]) -> None:
    if arguments[0] == "make":
        make_sets(arguments[1], arguments[2] == "quick")
    else:
        print(json.dumps(run(*arguments[1:])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        print_result(measure, __doc__)
