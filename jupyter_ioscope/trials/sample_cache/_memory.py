"""Memory that several processes share and the lock on it; nothing of either outlives them.

The memory is a file without a name, so it is gone with the last process that has it open, however
that ends. The lock is a POSIX record lock: the kernel frees it when its process dies, and a forked
child does not inherit it.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_ioscope.errors import InputError


class SharedMemory:
    """`size_bytes` of zeros. Pages are taken from the machine when they are first written."""

    def __init__(self, size_bytes: int, fd: int = -1) -> None:
        self.size_bytes = size_bytes
        self.fd = fd if fd >= 0 else _anonymous(size_bytes)
        self.map = mmap.mmap(self.fd, size_bytes)
        self._threads = threading.Lock()
        self._pid = os.getpid()
        self._closer = weakref.finalize(self, os.close, self.fd)

    @contextmanager
    def locked(self, exclusive: bool) -> Iterator[None]:
        """Alone with the memory, or together with others who only read."""
        import fcntl

        if self._pid != os.getpid():
            # A thread of the parent may have held the lock at the fork.
            self._threads, self._pid = threading.Lock(), os.getpid()
        with self._threads:
            fcntl.lockf(self.fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            try:
                yield
            finally:
                fcntl.lockf(self.fd, fcntl.LOCK_UN)

    def close(self) -> None:
        self.map.close()
        self._closer()

    def for_worker(self) -> Any:
        """What a spawned worker needs to open it; None where no worker is being started."""
        from multiprocessing import context, reduction

        if context.get_spawning_popen() is None:
            return None
        return reduction.DupFd(self.fd)


def from_parent(size_bytes: int, handle: Any) -> SharedMemory:
    """The memory behind what `for_worker` gave, in the worker."""
    return SharedMemory(size_bytes, handle.detach())


def _anonymous(size_bytes: int) -> int:
    if sys.platform == "win32":
        raise InputError("the sample cache needs Linux or macOS: it shares files without a name")
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("ioscope-samples")
        os.ftruncate(fd, size_bytes)
        return fd
    with tempfile.TemporaryFile() as file:
        fd = os.dup(file.fileno())
    os.ftruncate(fd, size_bytes)
    return fd
