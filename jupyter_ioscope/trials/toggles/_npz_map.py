"""Members of NPZ archives as memory maps, in a trial's child and its workers."""

from __future__ import annotations

import functools
import mmap
import os
import shutil
import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from jupyter_ioscope.trials.toggles._handles import Handles, file_key
from jupyter_ioscope.trials.toggles._rebind import rebind

_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: lengths of its name and extra field
_STORED = 0


class Member(NamedTuple):
    """Where the numbers of an array lie in a file."""

    path: str
    at: int
    dtype: Any
    shape: tuple[int, ...]
    fortran: bool
    fd: int

    def mapped(self) -> Any:
        """The array. Writing to it changes this copy only, as with an array that was read."""
        import numpy

        start = self.at // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        count = int(numpy.prod(self.shape, dtype=numpy.int64))
        length = self.at - start + count * self.dtype.itemsize
        memory = mmap.mmap(self.fd, length, access=mmap.ACCESS_COPY, offset=start)
        flat = numpy.frombuffer(memory, self.dtype, count, self.at - start)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


@dataclass(frozen=True)
class NpzMapped:
    """`archive[name]` maps the member where it lies uncompressed in the archive, else a copy of it
    that is unpacked once into `folder`. Archives that are opened again stay open."""

    folder: str

    def install(self) -> None:
        import numpy

        kind: Any = numpy.lib.npyio.NpzFile
        original = kind.__getitem__
        if hasattr(original, "_ioscope_mapped"):
            return
        members = Handles()

        @functools.wraps(original)
        def getitem(archive: Any, key: Any) -> Any:
            found = member_of(archive, key, members, self.folder)
            return original(archive, key) if found is None else found.mapped()

        getitem._ioscope_mapped = True  # type: ignore[attr-defined]
        kind.__getitem__ = getitem
        self._keep_open(numpy, kind)

    def _keep_open(self, numpy: Any, kind: Any) -> None:
        load, handles = numpy.load, Handles()

        @functools.wraps(load)
        def loaded(file: Any, *args: Any, **kwargs: Any) -> Any:
            key = file_key("npz", file, args, sorted(kwargs.items()))
            kept = handles.get(key) if key is not None else None
            if kept is not None:
                return kept
            made = load(file, *args, **kwargs)
            if key is not None and isinstance(made, kind):
                made.close = lambda: None
                handles.put(key, made)
            return made

        rebind(numpy, "load", loaded)


def member_of(archive: Any, key: str, members: Handles, folder: str) -> Member | None:
    """The member `key`, unpacked when it must be; None where it has to be read as ever."""
    path = getattr(archive.zip, "filename", None)
    name: str | None = (
        archive._files.get(key) if hasattr(archive, "_files") else _old_name(archive, key)
    )
    at = file_key("member", path, name)
    if at is None or name is None:
        return None
    known = members.get(at)
    if known is None:
        known = _located(archive, str(path), name, at, folder) or _AS_EVER
        members.put(at, known)
    return known if isinstance(known, Member) else None


_AS_EVER = object()


def _old_name(archive: Any, key: str) -> str | None:
    """numpy before 2.0 kept a list of full names."""
    names = archive.zip.namelist()
    return next((name for name in (key, f"{key}.npy") if name in names), None)


def _located(archive: Any, path: str, name: str, key: Any, folder: str) -> Member | None:
    info = archive.zip.getinfo(name)
    if info.compress_type == _STORED and not info.flag_bits & 1:
        with open(path, "rb") as file:
            file.seek(info.header_offset)
            lengths = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
        found = array_at(path, info.header_offset + 30 + sum(lengths))
        # Arrays must begin at a multiple of their numbers' size to be used in place.
        if found is None or found.at % max(1, found.dtype.alignment) == 0:
            return found
        os.close(found.fd)
    copy = os.path.join(folder, blake2b(repr(key).encode(), digest_size=12).hexdigest() + ".npy")
    if not os.path.exists(copy):
        unpack(archive, name, copy)
    return array_at(copy, 0)


def unpack(archive: Any, name: str, copy: str) -> None:
    """Write one member to a file of its own; several processes may do so at once."""
    part = f"{copy}.{os.getpid()}"
    with archive.zip.open(name) as source, open(part, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.replace(part, copy)


def array_at(path: str, at: int) -> Member | None:
    """The array whose .npy header lies at byte `at`; None when its numbers cannot be mapped."""
    import numpy

    file_format = numpy.lib.format
    with open(path, "rb") as file:
        file.seek(at)
        try:
            version = file_format.read_magic(file)
            read = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}[version]
            shape, fortran, dtype = getattr(file_format, read)(file)
        except (ValueError, KeyError):
            return None
        if dtype.hasobject or 0 in shape:
            return None
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return Member(path, file.tell(), dtype, shape, fortran, fd)
