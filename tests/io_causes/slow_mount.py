"""A folder seen through a FUSE mount that answers late: a network file system without a network.

The mount shows a real folder, and is read-only unless it is told how long a write takes. Reads and
look-ups wait as long as they are told to; with `cached=False` the kernel keeps nothing, so that
every read waits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.io_causes.orphan import detach, orphan, ready, when_let_go

MOUNT_S = 10.0
_ROOM = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree")


def why_not() -> str:
    """What this machine lacks for a FUSE mount; empty where nothing is lacking."""
    if not sys.platform.startswith("linux"):
        return "FUSE mounts are tested on Linux only"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no access to /dev/fuse (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is not installed (Debian: fuse3)"
    try:
        import mfusepy  # noqa: F401
    except (ImportError, OSError) as error:
        return f"the Python binding mfusepy cannot be used: {error}"
    return ""


@contextlib.contextmanager
def slow_mount(
    folder: Path,
    read_s: float = 0.0,
    look_up_s: float = 0.0,
    cached: bool = False,
    write_s: float = -1.0,
) -> Iterator[Path]:
    """`folder` under another path, where a read takes `read_s` longer, finding or opening a file
    `look_up_s`, and a write `write_s`; below 0 nothing can be written. Unmounted with the block,
    and when this process dies.

    Raises:
        RuntimeError: the mount did not come about; the text says why.
    """
    point = Path(tempfile.mkdtemp(prefix="ioscope-slow-"))
    words = [str(folder), str(point), *map(repr, (read_s, look_up_s, write_s)), str(int(cached))]
    try:
        with orphan("tests.io_causes.slow_mount", *words):
            _wait_for(point)
            yield point
    finally:
        if os.path.ismount(point):
            _unmount(point)
        with contextlib.suppress(OSError):
            point.rmdir()


def _wait_for(point: Path) -> None:
    until = time.monotonic() + MOUNT_S
    while not os.path.ismount(point):
        if time.monotonic() > until:
            raise RuntimeError(f"{point} was not mounted within {MOUNT_S:g} s")
        time.sleep(0.01)


def _unmount(point: Path) -> None:
    """Lazily: the mount is gone at once, also where somebody still has a file open."""
    command = ["fusermount3", "-u", "-z", "-q", str(point)]
    subprocess.run(command, capture_output=True, timeout=MOUNT_S, check=False)


def serve(
    pipe: int,
    folder: str,
    point: str,
    read_s: float,
    look_up_s: float,
    write_s: float,
    cached: bool,
) -> None:
    """Mount, and answer until nobody holds the pipe."""
    import mfusepy

    class Slow(mfusepy.Operations):  # type: ignore[misc]
        use_ns = True

        def _find(self, path: str) -> str:
            time.sleep(look_up_s)
            return folder + path

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            try:
                about = os.lstat(self._find(path))
            except OSError as error:
                raise mfusepy.FuseOSError(error.errno or errno.EIO) from None
            names = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino")
            times = {f"st_{kind}": getattr(about, f"st_{kind}_ns") for kind in ("atime", "mtime")}
            return {name: getattr(about, name) for name in names} | times

        def readdir(self, path: str, fh: int) -> list[str]:
            return [".", "..", *os.listdir(folder + path)]

        def open(self, path: str, flags: int) -> int:
            return os.open(self._find(path), os.O_RDONLY)

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            time.sleep(read_s)
            return os.pread(fh, size, offset)

        def release(self, path: str, fh: int) -> int:
            os.close(fh)
            return 0

        def init(self, path: str) -> None:
            ready("mounted")

    class Writable(Slow):
        """As most such programs: space cannot be reserved (there is no `fallocate`)."""

        def open(self, path: str, flags: int) -> int:
            return os.open(self._find(path), flags & os.O_ACCMODE)

        def create(self, path: str, mode: int, fi: Any = None) -> int:
            return os.open(self._find(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            time.sleep(write_s)
            return os.pwrite(fh, data, offset)

        def truncate(self, path: str, length: int, fh: int | None = None) -> int:
            os.truncate(folder + path, length)
            return 0

        def mkdir(self, path: str, mode: int) -> int:
            os.mkdir(folder + path, mode)
            return 0

        def unlink(self, path: str) -> int:
            os.unlink(folder + path)
            return 0

        def rmdir(self, path: str) -> int:
            os.rmdir(folder + path)
            return 0

        def statfs(self, path: str) -> dict[str, int]:
            room = os.statvfs(folder)
            return {name: getattr(room, name) for name in _ROOM}

    when_let_go(pipe, lambda: _unmount(Path(point)))
    # A direct_io file is read past the page cache; a mapped one needs the cache.
    options: dict[str, Any] = {} if cached else {"direct_io": True}
    if write_s < 0:
        options["ro"] = True
    shows = Slow() if write_s < 0 else Writable()
    mfusepy.FUSE(shows, point, foreground=True, fsname="slow", **options)


if __name__ == "__main__":
    detach()
    number, shown, at, reading, finding, writing, kept = sys.argv[1:]
    serve(int(number), shown, at, float(reading), float(finding), float(writing), kept == "1")
