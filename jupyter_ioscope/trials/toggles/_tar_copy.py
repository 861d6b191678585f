"""Members of compressed tar archives out of an unpacked copy, in a trial's child and workers."""

from __future__ import annotations

import functools
import io
import os
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from jupyter_ioscope.trials.toggles._rebind import rebind

_CHUNK = 1 << 20


class Copy(NamedTuple):
    """An archive and its unpacked copy; the archive's size and time tell whether it is the same."""

    path: str
    copy: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class TarUnpacked:
    """`extractfile` reads the same bytes at the same place of the unpacked copy."""

    copies: tuple[Copy, ...]

    def install(self) -> None:
        import tarfile

        kind: Any = tarfile.TarFile
        original, opening = kind.extractfile, kind.open.__func__
        if hasattr(original, "_ioscope_copies"):
            return
        known = {one.path: one for one in self.copies if same_archive(one)}
        fds: dict[str, int] = {}

        @functools.wraps(original)
        def extractfile(archive: Any, member: Any) -> Any:
            one = known.get(archive.name)
            if one is None:
                return original(archive, member)
            archive._check("r")
            info = archive.getmember(member) if isinstance(member, str) else member
            if not info.isreg() or info.sparse is not None:
                return original(archive, member)
            if one.path not in fds:
                fds[one.path] = os.open(one.copy, os.O_RDONLY | os.O_CLOEXEC)
            # At a given place, so that forked processes may share the descriptor.
            return io.BytesIO(os.pread(fds[one.path], info.size, info.offset_data))

        @functools.wraps(opening)
        def opened(
            cls: Any, name: Any = None, mode: str = "r", fileobj: Any = None, *a: Any, **k: Any
        ) -> Any:
            one = known.get(_absolute(name)) if fileobj is None else None
            if one is None or not mode.startswith("r") or "|" in mode:
                return opening(cls, name, mode, fileobj, *a, **k)
            made = opening(cls, one.copy, "r:", None)
            made.name = one.path
            return made

        extractfile._ioscope_copies = True  # type: ignore[attr-defined]
        kind.extractfile = extractfile
        kind.open = classmethod(opened)
        rebind(tarfile, "open", kind.open)


def same_archive(one: Copy) -> bool:
    """Whether the archive is still what the copy was made of."""
    try:
        about = os.stat(one.path)
    except OSError:
        return False
    return (about.st_size, about.st_mtime_ns) == (one.size, one.mtime_ns)


def unpacked(path: str, folder: str, most_bytes: int, seconds: float) -> Copy | str:
    """Unpack an archive as a plain tar into `folder`, or why not."""
    import tarfile

    about = os.stat(path)
    copy = os.path.join(folder, f"{about.st_dev}-{about.st_ino}.tar")
    until, written = time.monotonic() + seconds, 0
    with tarfile.open(path) as archive, open(copy, "wb") as target:
        source: Any = archive.fileobj
        source.seek(0)
        while data := source.read(_CHUNK):
            written += target.write(data)
            if written > most_bytes:
                return "unpacked, the archive takes more than half of the free space for files"
            if time.monotonic() > until:
                return f"unpacking the archive takes longer than {seconds:.0f} s"
    return Copy(path, copy, about.st_size, about.st_mtime_ns)


def _absolute(name: Any) -> str:
    try:
        return os.path.abspath(os.fsdecode(os.fspath(name)))
    except TypeError:
        return ""
