"""Writing and reading one array or table in each format, as a loader would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.optional import need

Rows = list[int]


@dataclass(frozen=True)
class Format:
    """A file format. `file` is its file's name; formats of one name share what is written."""

    name: str
    file: str
    package: str
    write: Callable[[Any, str], None]
    rows: Callable[[str, Rows], Any]
    all: Callable[[str], Any]
    note: str = ""
    only_lazy: bool = False
    code: str = ""


TOLD = {
    True: (
        "np.load(..., mmap_mode='r') is ignored for NPZ without a word: every member is read whole "
        "when it is first used. Save single arrays as NPY, or unpack the NPZ once.",
        "Parquet and Arrow hold rows as flat lists: shapes come back by reshape, and number types "
        "that they lack (complex, other byte orders) do not fit.",
    ),
    False: (
        "Parquet reads whole row groups (up to 128 Mi rows by default): single rows need small "
        "row groups, or Arrow.",
    ),
}


def is_array(data: Any) -> bool:
    return hasattr(data, "dtype") and hasattr(data, "ndim")


def take(data: Any, rows: Rows) -> Any:
    return data[rows] if is_array(data) else data.take(rows)


def differences(want: Any, have: Any) -> list[str]:
    """In words, what came back otherwise than it was written."""
    if is_array(want):
        return _array_differences(want, need("numpy", "the bench of formats").asarray(have))
    if want.schema.names != have.schema.names:
        return [f"columns {want.schema.names} come back as {have.schema.names}"]
    found = []
    for field in want.schema:
        mine, other = want[field.name], have[field.name]
        if other.type != field.type:
            found.append(f"{field.name}: {field.type} comes back as {other.type}")
        elif mine.combine_chunks() != other.combine_chunks() and repr(mine.to_pylist()) != repr(
            other.to_pylist()
        ):
            found.append(f"{field.name}: other values")
    return found


def _array_differences(want: Any, have: Any) -> list[str]:
    found = []
    if have.dtype != want.dtype:
        found.append(f"{want.dtype.str} comes back as {have.dtype.str}")
    if have.shape != want.shape:
        found.append(f"the shape {want.shape} comes back as {have.shape}")
    elif _converted(have, want.dtype).tobytes() != want.tobytes():
        found.append("other values")
    return found


def _converted(array: Any, dtype: Any) -> Any:
    """Another type may still hold the same values: texts as objects, seconds as milliseconds."""
    if array.dtype != dtype:
        with contextlib.suppress(TypeError, ValueError):
            return array.astype(dtype)
    return array


def _numpy() -> Any:
    return need("numpy", "the bench of formats")


def _npy_rows(path: str, rows: Rows) -> Any:
    return _numpy().load(path)[rows]


def _map_rows(path: str, rows: Rows) -> Any:
    return _numpy().load(path, mmap_mode="r")[rows]


def _npz_rows(path: str, rows: Rows) -> Any:
    with _numpy().load(path) as members:
        return members["data"][rows]


def _npz_map_rows(path: str, rows: Rows) -> Any:
    with _numpy().load(path, mmap_mode="r") as members:
        return members["data"][rows]


def _npz_all(path: str) -> Any:
    with _numpy().load(path) as members:
        return members["data"]


def _h5_write(compression: str | None) -> Callable[[Any, str], None]:
    def write(data: Any, path: str) -> None:
        with need("h5py", "HDF5").File(path, "w") as file:
            options: dict[str, Any] = {}
            if compression:
                per_chunk = max(1, min(len(data), (1 << 20) // max(1, data.nbytes // len(data))))
                options = {"compression": compression, "chunks": (per_chunk, *data.shape[1:])}
            file.create_dataset("data", data=data, **options)

    return write


def _h5_rows(path: str, rows: Rows) -> Any:
    with need("h5py", "HDF5").File(path, "r") as file:
        return file["data"][rows]


def _h5_all(path: str) -> Any:
    with need("h5py", "HDF5").File(path, "r") as file:
        return file["data"][:]


def _as_table(array: Any) -> Any:
    arrow: Any = need("pyarrow", "Arrow")
    flat = arrow.array(array.reshape(-1))
    width = max(1, array.size // len(array))
    column = arrow.FixedSizeListArray.from_arrays(flat, width) if array.ndim > 1 else flat
    shape = ",".join(map(str, array.shape[1:]))
    return arrow.table({"data": column}).replace_schema_metadata({"shape": shape})


def _as_array(table: Any) -> Any:
    shape = [int(n) for n in table.schema.metadata[b"shape"].decode().split(",") if n]
    column = table.column("data").combine_chunks()
    if shape:
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(-1, *shape)


def _write_parquet(table: Any, path: str, **options: Any) -> None:
    need("pyarrow.parquet", "Parquet").write_table(table, path, **options)


def _read_parquet(path: str) -> Any:
    # A fragment of memory-mapped reads and threads would measure the machine, not the format.
    return need("pyarrow.parquet", "Parquet").ParquetFile(path).read(use_threads=False)


def _parquet_rows(path: str, rows: Rows) -> Any:
    """Only the row groups that hold the rows, then the rows."""
    file = need("pyarrow.parquet", "Parquet").ParquetFile(path)
    begin, groups, places, kept = 0, [], [], 0
    for number in range(file.num_row_groups):
        count = file.metadata.row_group(number).num_rows
        inside = [row - begin for row in rows if begin <= row < begin + count]
        if inside:
            groups.append(number)
            places += [kept + row for row in inside]
            kept += count
        begin += count
    return file.read_row_groups(groups, use_threads=False).take(places)


def _write_arrow(table: Any, path: str) -> None:
    with need("pyarrow.ipc", "Arrow").new_file(path, table.schema) as file:
        file.write_table(table)


def _map_arrow(path: str) -> Any:
    source = need("pyarrow", "Arrow").memory_map(path)
    return need("pyarrow.ipc", "Arrow").open_file(source).read_all()


def _read_arrow(path: str) -> Any:
    return need("pyarrow.ipc", "Arrow").open_file(path).read_all()


_GROUP_ROWS = 256
ARRAY = (
    Format("NPY, read whole", "a.npy", "numpy", lambda d, p: _numpy().save(p, d),
           _npy_rows, lambda p: _numpy().load(p)),
    Format("NPY, memory map", "a.npy", "numpy", lambda d, p: _numpy().save(p, d),
           _map_rows, lambda p: _numpy().array(_numpy().load(p, mmap_mode="r")),
           code='array = np.load("data.npy", mmap_mode="r")\nsample = array[index]'),
    Format("NPZ", "a.npz", "numpy", lambda d, p: _numpy().savez(p, data=d), _npz_rows, _npz_all),
    Format("NPZ, mmap_mode='r'", "a.npz", "numpy", lambda d, p: _numpy().savez(p, data=d),
           _npz_map_rows, _npz_all, note="mmap_mode is ignored", only_lazy=True),
    Format("NPZ, compressed", "z.npz", "numpy",
           lambda d, p: _numpy().savez_compressed(p, data=d), _npz_rows, _npz_all),
    Format("HDF5", "a.h5", "h5py", _h5_write(None), _h5_rows, _h5_all, note="contiguous",
           code='file = h5py.File("data.h5", "r")  # once a worker\nsample = file["data"][index]'),
    Format("HDF5, gzip", "z.h5", "h5py", _h5_write("gzip"), _h5_rows, _h5_all,
           note="chunks of about 1 MiB"),
    Format("Parquet", "a.parquet", "pyarrow",
           lambda d, p: _write_parquet(_as_table(d), p, row_group_size=_GROUP_ROWS),
           lambda p, r: _as_array(_parquet_rows(p, r)), lambda p: _as_array(_read_parquet(p)),
           note=f"row groups of {_GROUP_ROWS}"),
    Format("Arrow, memory map", "a.arrow", "pyarrow", lambda d, p: _write_arrow(_as_table(d), p),
           lambda p, r: _as_array(_map_arrow(p).take(r)), lambda p: _as_array(_map_arrow(p)),
           code='table = pa.ipc.open_file(pa.memory_map("data.arrow")).read_all()'),
)  # fmt: skip
TABLE = (
    Format("Parquet", "t.parquet", "pyarrow", _write_parquet, _parquet_rows, _read_parquet,
           note="row groups as pyarrow writes them"),
    Format("Parquet, small row groups", "s.parquet", "pyarrow",
           lambda t, p: _write_parquet(t, p, row_group_size=_GROUP_ROWS), _parquet_rows,
           _read_parquet, note=f"row groups of {_GROUP_ROWS}",
           code=f'pq.write_table(table, "data.parquet", row_group_size={_GROUP_ROWS})'),
    Format("Parquet, zstd", "z.parquet", "pyarrow",
           lambda t, p: _write_parquet(t, p, compression="zstd"), _parquet_rows, _read_parquet),
    Format("Arrow, read", "t.arrow", "pyarrow", _write_arrow,
           lambda p, r: _read_arrow(p).take(r), _read_arrow),
    Format("Arrow, memory map", "t.arrow", "pyarrow", _write_arrow,
           lambda p, r: _map_arrow(p).take(r), _map_arrow,
           code='table = pa.ipc.open_file(pa.memory_map("data.arrow")).read_all()'),
)  # fmt: skip
