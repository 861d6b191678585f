"""Reading the same small file again and again through one descriptor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from jupyter_ioscope.capture.probes._probe import SeriesInfo
from jupyter_ioscope.model.profile import Gap


class KeptFile:
    """A file of `/proc` or `/sys` kept open."""

    def __init__(self, path: str, size: int = 65536) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = size
        try:
            self.read()
        except OSError:
            self.close()
            raise

    def read(self) -> bytes:
        return os.pread(self._fd, self._size, 0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class FileReader:
    """Base of readers that keep some files open."""

    def __init__(self, series: Sequence[SeriesInfo], gaps: Iterable[Gap] = ()) -> None:
        self.series = series
        self.gaps = list(gaps)
        self.facts: Sequence[str] = ()
        self._files: list[KeptFile] = []

    def keep(self, path: str, size: int = 65536) -> KeptFile:
        file = KeptFile(path, size)
        self._files.append(file)
        return file

    def close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        self._files.clear()


class TreeTotals:
    """Sums a cumulative counter over a tree whose processes come and go.

    Linux adds the counters of a reaped process to its parent's, so a process that has ended is
    still in the sum. Where its parent was not of the tree, the sum would fall; the fall is
    carried, so that the total never does.
    """

    def __init__(self, width: int) -> None:
        self._carried = [0.0] * width
        self._last = [0.0] * width

    def update(self, values: Iterable[Sequence[float]]) -> list[float]:
        """The totals from the counters of all live processes."""
        sums = list(self._carried)
        for row in values:
            for position, value in enumerate(row):
                sums[position] += value
        for position, value in enumerate(sums):
            lost = self._last[position] - value
            if lost > 0:
                self._carried[position] += lost
                sums[position] = self._last[position]
        self._last = sums
        return list(sums)
