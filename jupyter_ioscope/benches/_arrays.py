"""The array or table that a format bench is about, read from what the user gave."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import file_of, is_path, really
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import loaded, need

TAKES = (
    "an array or table (NumPy, torch, pandas, pyarrow, datasets), or the path of a .npy, .npz, "
    ".h5, .parquet, .arrow, .feather or .csv file"
)
MOST_BYTES = 16 << 20


def array_or_table(target: Any, takes: str = TAKES) -> tuple[Any, str]:
    """(a NumPy array or a pyarrow Table, name of the target), rows beyond 16 MiB left out. `takes`
    is what should be given, for the sentence.

    Raises:
        InputError: it is neither, or its file is not what its name says.
    """
    if not is_path(target):
        return _cut(_of_object(target, takes)), kind(target)
    path, _ = file_of(target, takes)
    ending = os.path.splitext(path)[1].lower()
    reader = _READERS.get(ending)
    if reader is None:
        raise InputError(f"{path!r} ends with {ending!r}: give {takes}")
    try:
        return _cut(reader(path)), path
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path!r} cannot be read as its name says ({short(error)}): it begins like "
            f"{really(path)}"
        ) from error


def _of_object(value: Any, takes: str) -> Any:
    numpy: Any = need("numpy", "the bench of formats")
    arrow, pandas, torch = loaded("pyarrow"), loaded("pandas"), loaded("torch")
    if isinstance(value, numpy.ndarray):
        return value
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return value.detach().cpu().numpy()
        except (TypeError, RuntimeError) as error:
            raise InputError(f"the tensor ({value.dtype}) has no NumPy form: {error}") from error
    if arrow is not None and isinstance(value, arrow.Table):
        return value
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return need("pyarrow", "a table").Table.from_pandas(value, preserve_index=False)
    formatted = getattr(value, "with_format", None)
    if callable(formatted) and hasattr(value, "num_rows"):
        table: Any = value.with_format("arrow")[:]  # a Hugging Face dataset, its order kept
        return table
    raise InputError(f"target is {kind(value)}: give {takes}")


def _cut(value: Any) -> Any:
    """The first rows, so that all forms of it fit in memory and on disk."""
    numpy: Any = need("numpy", "the bench of formats")
    if isinstance(value, numpy.ndarray):
        if not value.ndim or not value.size:
            raise InputError(f"the array has the shape {value.shape}: give one with rows")
        if value.dtype.hasobject:
            raise InputError(
                f"the array holds Python objects (dtype {value.dtype}): no format but pickle keeps "
                "them; give numbers, or a table"
            )
        rows = max(1, int(MOST_BYTES // max(1, value.nbytes / len(value))))
        return numpy.ascontiguousarray(value[:rows])
    if not value.num_rows:
        raise InputError("the table has no rows: give one that has")
    rows = max(1, int(MOST_BYTES // max(1, value.nbytes / value.num_rows)))
    return value.slice(0, rows)


def _npy(path: str) -> Any:
    return need("numpy", "NPY files").load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
    if not members:
        raise InputError(f"{path!r} holds no array: give one that does")
    largest = max(members, key=lambda one: one.file_size)  # the others are not even read
    with need("numpy", "NPZ files").load(path, allow_pickle=False) as arrays:
        return arrays[largest.filename.removesuffix(".npy")]


def _hdf5(path: str) -> Any:
    h5py: Any = need("h5py", "HDF5 files")
    found: list[Any] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda _, one: found.append(one) if isinstance(one, h5py.Dataset) else None)
        if not found:
            raise InputError(f"{path!r} holds no data set: give one that does")
        largest = max(found, key=lambda one: one.nbytes if one.ndim else 0)
        rows = max(1, int(MOST_BYTES // max(1, largest.nbytes / max(1, len(largest)))))
        return largest[:rows]


def _parquet(path: str) -> Any:
    parquet: Any = need("pyarrow.parquet", "Parquet files")
    file = parquet.ParquetFile(path)
    groups, size = [], 0
    for number in range(file.num_row_groups):
        groups.append(number)
        size += file.metadata.row_group(number).total_byte_size
        if size >= MOST_BYTES:
            break
    return file.read_row_groups(groups)


def _arrow(path: str) -> Any:
    arrow: Any = need("pyarrow", "Arrow files")
    ipc: Any = need("pyarrow.ipc", "Arrow files")
    source = arrow.memory_map(path)
    try:
        return ipc.open_file(source).read_all()
    except arrow.ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source).read_all()  # as Hugging Face datasets write them


def _csv(path: str) -> Any:
    arrow: Any = need("pyarrow", "CSV files")
    batches, size = [], 0
    with need("pyarrow.csv", "CSV files").open_csv(path) as reader:
        schema = reader.schema
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size >= MOST_BYTES:
                break
    return arrow.Table.from_batches(batches, schema)


_READERS = {
    ".npy": _npy,
    ".npz": _npz,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".csv": _csv,
}
