"""Somebody else on the same disk: writes past the page cache as fast as the device takes it."""

from __future__ import annotations

import mmap
import os
import sys
import threading

from tests.io_causes.orphan import detach, ready, when_let_go

BLOCK_BYTES = 4 << 20
FILE_BLOCKS = 32


def serve(pipe: int, folder: str) -> None:
    """Write, again and again over the same file, until nobody holds the pipe."""
    stop = threading.Event()
    when_let_go(pipe, stop.set)
    path = os.path.join(folder, "neighbour")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
    block = mmap.mmap(-1, BLOCK_BYTES)
    ready("writing")
    number = 0
    while not stop.is_set():
        os.pwrite(file, block, (number % FILE_BLOCKS) * BLOCK_BYTES)
        number += 1
    os.close(file)
    os.unlink(path)


if __name__ == "__main__":
    detach()
    serve(int(sys.argv[1]), sys.argv[2])
