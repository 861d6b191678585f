"""Copies of a Hugging Face dataset's table in the private folder of a comparison."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

from jupyter_ioscope.optional import need
from jupyter_ioscope.trials.held import formatted_like
from jupyter_ioscope.units import bytes_text

MOST_BYTES = 2_000_000_000  # more would take a trial's whole time to write
_ROOM = 2  # times the copy's size that the disk must have free
_ROWS = 1_000


def too_large(dataset: Any, folder: str = "") -> str:
    """Why a copy of the rows is not made for a trial, or ""."""
    size = rows_bytes(dataset)
    if size > MOST_BYTES:
        return (
            f"its rows are {bytes_text(size)}: too much to be written for a trial; "
            "the code shows how to do it once"
        )
    if folder and shutil.disk_usage(folder).free < _ROOM * size:
        return f"the temporary folder has no room for {bytes_text(size)}"
    return ""


def rows_bytes(dataset: Any) -> int:
    """Bytes of the rows in memory, estimated from those of the whole table."""
    table = dataset.data
    return int(table.nbytes * len(dataset) / max(1, table.num_rows))


def write_table(dataset: Any, path: str, features: Any = None) -> float:
    """Write the dataset's table as an Arrow file, cast to `features`; returns the seconds."""
    pyarrow = need("pyarrow", "a copy of the rows")
    started = time.monotonic()
    schema = (features or dataset.features).arrow_schema
    table = dataset.data.table.select(list(dataset.features))
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, schema) as out:
        for at in range(0, table.num_rows, _ROWS):
            part = pyarrow.Table.from_arrays(
                [column.combine_chunks().cast(field.type) if column.type != field.type else column
                 for column, field in zip(table.slice(at, _ROWS).columns, schema, strict=True)],
                schema=schema,
            )  # fmt: skip
            out.write_table(part)
    return time.monotonic() - started


def opened(dataset: Any, path: str, features: Any = None, indices: bool = True) -> Any:
    """The file at `path` as a dataset that is memory-mapped and otherwise like `dataset`."""
    import datasets

    new = datasets.Dataset.from_file(path)
    info = dataset.info.copy()
    info.features = features or dataset.features
    rows = dataset._indices if indices else None
    made = datasets.Dataset(new.data, info=info, split=dataset.split, indices_table=rows)
    return formatted_like(made, dataset)


def file_in(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.arrow")
