"""Facts, stacks and transforms of Hugging Face datasets, as a profile holds them."""

from __future__ import annotations

import dataclasses

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import FIRST_RUN, Transform
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack, Stacks
from tests.builders import profile, without
from tests.simulator import PID, START_NS

SITE = "/venv/lib/python3.11/site-packages"
ARROW, FORMATTING = f"{SITE}/datasets/arrow_dataset.py", f"{SITE}/datasets/formatting/formatting.py"
CELL = Frame("<module>", "In [7]", 2, 7)
FETCH = Frame("fetch", f"{SITE}/torch/utils/data/_utils/fetch.py", 54)
ITER = Frame("Dataset.iter", ARROW, 2810)
GETITEM = Frame("Dataset._getitem", ARROW, 3143)
FORMAT = Frame("format_table", FORMATTING, 674)
GATHER = (
    ITER,
    GETITEM,
    Frame("query_table", FORMATTING, 633),
    Frame("_query_table_with_indices_mapping", FORMATTING, 66),
)
OBJECTS = (ITER, FORMAT, Frame("PythonArrowExtractor.extract_batch", FORMATTING, 150))
ARRAYS = (ITER, FORMAT, Frame("NumpyArrowExtractor._arrow_array_to_numpy", FORMATTING, 216))
COLUMN = (
    FETCH,
    Frame("__getitem__", "In [4]", 3, 4),
    Frame("Column.__getitem__", ARROW, 687),
    Frame("Dataset._fast_select_column", ARROW, 2733),
)
DECODE = (
    FETCH,
    Frame("Dataset.__getitems__", ARROW, 3165),
    FORMAT,
    Frame("Image.decode_example", f"{SITE}/datasets/features/image.py", 196),
    Frame("ImageFile.load", f"{SITE}/PIL/ImageFile.py", 425),
)
RESIZE = (
    FETCH,
    Frame("crop", "In [4]", 5, 4),
    Frame("Image.resize", f"{SITE}/PIL/Image.py", 2300),
)
OWN = (FETCH, Frame("augment", "In [4]", 9, 4))
MAP = (Frame("Dataset.map", ARROW, 3300), Frame("Dataset._map_single", ARROW, 3900))
MAP_OWN = (*MAP, Frame("tokenize", "In [4]", 9, 4))

MAPPED = {"kind": "Dataset", "indices_mapping": "yes", "format": "python", "wrapped": "no"}
LISTS = {
    "kind": "Dataset",
    "format": "python",
    "lists": "wave",
    "values_per_row": "4000",
    "wrapped": "no",
    "batched_fetch": "yes",
}
NESTED = {
    "kind": "Dataset",
    "format": "numpy",
    "nested_lists": "grid",
    "inner_lists_per_row": "400",
    "wrapped": "no",
    "batched_fetch": "yes",
}
PICTURES = {"kind": "Dataset", "format": "python", "decoded": "photo", "wrapped": "no"}
MEMORY = {
    "kind": "Dataset",
    "format": "numpy",
    "in_memory": "yes",
    "data_bytes": "800000000",
    "rows": "1000",
    "wrapped": "no",
}


def of_dataset(
    value: Profile,
    facts: dict[str, str],
    *seen: tuple[tuple[Frame, ...], int],
    library: str = "datasets",
    batch_size: int | None = 8,
    stream: bool = False,
) -> Profile:
    """`value` with the main loader's dataset told by `facts`, and stacks of the threads that fetch
    as given: (frames, samples)."""
    info = dataclasses.replace(
        value.loaders[0],
        library=library,
        batch_size=batch_size,
        dataset_kind="iterable" if stream else "map",
        facts=tuple(facts.items()),
    )
    return without(value, loaders=(info,), stacks=stacks(value, *seen))


def stacks(value: Profile, *seen: tuple[tuple[Frame, ...], int]) -> Stacks:
    frames: dict[Frame, int] = {}
    workers = value.loaders[0].num_workers
    rows = []
    for row, count in seen:
        indices = tuple(frames.setdefault(frame, len(frames)) for frame in (CELL, *row))
        role, pid = ("worker", value.workers[0].pid) if workers else ("consumer", PID)
        if "_map_single" in str(row) or "load_from_disk" in str(row):
            role, pid = "consumer", PID
        worker = 0 if role == "worker" else -1
        rows.append(Stack(role, worker, pid, "MainThread", indices, count))
    return Stacks("py-spy", 25.0, True, tuple(frames), tuple(rows))


def transform(**changes: object) -> Transform:
    """A row-wise map of 100,000 rows over two columns that took 3 s before the loop."""
    row = Transform(
        library="datasets",
        kind="map",
        function="tokenize",
        rows=100_000,
        batched=False,
        batch_size=-1,
        num_proc=1,
        start_ns=START_NS + 10_000_000,
        end_ns=START_NS + 3_010_000_000,
        cpu_ns=3_000_000_000,
        cached=False,
        why_missed=FIRST_RUN,
        columns=("text", "label"),
    )
    return row._replace(**changes)  # type: ignore[arg-type]


def after_transform(*seen: tuple[tuple[Frame, ...], int], **changes: object) -> Profile:
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, before_ms=3_100, batches=50)
    facts = {"kind": "Dataset", "format": "torch", "wrapped": "no"}
    return without(of_dataset(value, facts, *seen), transforms=(transform(**changes),))


def causes(value: Profile) -> list[str]:
    return [row.cause for row in diagnose(value).findings]


def first(value: Profile) -> Finding:
    return diagnose(value).findings[0]
