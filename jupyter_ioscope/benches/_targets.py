"""What benches do with the targets they are given: files that can be read, samples of loaders."""

from __future__ import annotations

import os
import stat
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.paths import absolute, nothing_in, path_text
from jupyter_ioscope.storage.kinds import local_path
from jupyter_ioscope.trials.spec import LoaderSpec, is_loader, spec_of

_MAGIC = {
    b"\x93NUMPY": "an NPY file",
    b"PK\x03\x04": "a zip archive (such as NPZ)",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow IPC file",
    b"\x1f\x8b": "gzip-compressed",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x89PNG": "a PNG picture",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
}


def is_path(target: Any) -> bool:
    return isinstance(target, (str, bytes, os.PathLike))


def path_of(target: Any, takes: str) -> str:
    """The path that a target is, made absolute.

    Raises:
        InputError: it is no path.
    """
    if not is_path(target):
        raise InputError(f"target is {kind(target)}: give {takes}")
    return absolute(local_path(path_text(target, "target", takes)))


def file_of(target: Any, takes: str, least_bytes: int = 1) -> tuple[str, int]:
    """(path, size) of a regular file that may be read and holds `least_bytes` at least.

    Raises:
        InputError: it is not; the text says what it is, and what to give.
    """
    path = path_of(target, takes)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise InputError(f"there is no {path!r}: give {takes}") from None
    except OSError as error:
        raise InputError(f"{path!r} cannot be looked at: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        what = next((name for test, name in kinds if test(found.st_mode)), "a device")
        raise InputError(f"{path!r} is {what}: give {takes}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path!r} may not be read: no permission for it")
    if found.st_size < least_bytes:
        what = f"of {found.st_size:,} bytes" if found.st_size else nothing_in(found)
        need = f" ({least_bytes:,} bytes at least)" if least_bytes > 1 else ""
        raise InputError(f"{path!r} is {what}: give {takes}{need}")
    return path, found.st_size


def really(path: str) -> str:
    """What a file begins like ("an HDF5 file"), or its first bytes as they are."""
    with open(path, "rb") as file:
        begin = file.read(16)
    return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), repr(begin))


def dataset_of(target: Any) -> Any:
    """The dataset behind a loader; any other target as it is."""
    return spec_of(target).dataset if is_loader(target) else target


def batch_of(loader: Any) -> Any:
    """The first batch of a loader, made in this process.

    Raises:
        InputError: it has none, or fails.
    """
    from jupyter_ioscope.trials.build import build

    spec: LoaderSpec = spec_of(loader)
    alone = spec.changed(
        num_workers=0, prefetch_factor=None, persistent_workers=False, timeout=0,
        multiprocessing_context=None, pin_memory=False,
    )  # fmt: skip
    try:
        for batch in build(alone):
            return batch
    except Exception as error:
        raise InputError(f"the loader fails: {short(error)}") from error
    raise InputError("the loader has no batch: give one that has")
