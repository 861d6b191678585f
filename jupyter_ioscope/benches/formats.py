"""NPY, NPZ, HDF5, Parquet and Arrow: a few rows here and there, and all of it, of the user's data.

The data are written once in each format into a private folder. A pass opens the file, reads, and
closes it: what a lazy format saves is then part of its time and of its memory.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jupyter_ioscope.benches import _array_files as files
from jupyter_ioscope.benches._array_files import Format
from jupyter_ioscope.benches._arrays import TAKES, array_or_table
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Missing, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import installed
from jupyter_ioscope.storage import filesystems
from jupyter_ioscope.units import bytes_text

_ROWS = 32
_SPARE = 3  # times the data: what the largest forms of it take together, with room to spare
_LAZY, _ALL = "rows here and there", "all of it"


def prepare(target: Any, folder: str) -> Prepared:
    data, name = array_or_table(target)
    formats = files.ARRAY if files.is_array(data) else files.TABLE
    _refuse_full(folder, data.nbytes, len(formats))
    rows = sorted(random.Random(len(data)).sample(range(len(data)), min(_ROWS, len(data))))
    arms: list[Arm] = []
    missing: list[Missing] = []
    written: dict[str, str] = {}
    for form in formats:
        path = os.path.join(folder, form.file)
        if not installed(form.package):
            missing.append(Missing(form.name, f"not installed: pip install {form.package}"))
            continue
        try:
            if form.file not in written:
                form.write(data, path)
                written[form.file] = path
        except Exception as error:  # a type that the format does not have
            missing.append(Missing(form.name, f"cannot hold it: {short(error)}"))
            continue
        arms += _arms(form, path, data, rows)
    if not arms:
        raise InputError(f"{name} fits none of the formats: {missing[0].reason}")
    arms.sort(key=lambda arm: arm.group != _LAZY)
    where = filesystems.of_path(folder).name
    notes = [
        f"{len(data):,} rows, {bytes_text(data.nbytes)} in memory, were written to {folder} "
        f"({where}) in each format and removed again; the page cache was warm.",
        *files.TOLD[files.is_array(data)],
    ]

    def sentences(_found: Found) -> Sequence[str]:
        return notes

    return Prepared(name, tuple(arms), tuple(missing), sentences=sentences, code=_code)


def _arms(form: Format, path: str, data: Any, rows: list[int]) -> Iterator[Arm]:
    size = os.stat(path).st_size
    for group, read in ((_LAZY, functools.partial(form.rows, path, rows)),
                        (_ALL, functools.partial(form.all, path))):  # fmt: skip
        if group == _ALL and form.only_lazy:
            continue
        want = files.take(data, rows) if group == _LAZY else data
        count = len(want)
        yield Arm(
            form.name,
            functools.partial(_open, read),
            count,
            bytes=int(want.nbytes),
            group=group,
            look=functools.partial(_differences, read, want),  # the reference may lose a type, too
            size_bytes=size,
            note=form.note,
        )


def _open(read: Callable[[], Any]) -> Pass:
    def once() -> None:
        read()

    return once


def _differences(read: Callable[[], Any], want: Any) -> list[str]:
    return files.differences(want, read())


def _refuse_full(folder: str, size: int, count: int) -> None:
    free, need = shutil.disk_usage(folder).free, _SPARE * size + count * (1 << 20)
    if free < need:
        raise InputError(
            f"{folder!r} has {bytes_text(free)} free, and writing the data in all formats wants "
            f"{bytes_text(need)}: set TMPDIR to a folder with more room"
        )


def _code(arm: Arm) -> str:
    form = next((one for one in (*files.ARRAY, *files.TABLE) if one.name == arm.name), None)
    return form.code if form is not None else ""


BENCH = Bench("formats", "File formats", TAKES, "row", prepare)
