"""Memory of the tree (PSS: shared pages counted once) and what the machine has left."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.probes._files import FileReader
from jupyter_ioscope.capture.probes._probe import Probe, Target, reason_of
from jupyter_ioscope.capture.probes._series import SERIES
from jupyter_ioscope.model.profile import Gap

_NAMES = ("tree_pss_bytes", "tree_rss_bytes", "machine_available_bytes")
# Reading PSS walks the page tables and holds the watched process's map lock while it does:
# at most this share of time is spent in it. Where neither the processes nor their resident memory
# changed it is read more rarely; not much, because pages that are copied change only the PSS.
_PSS_SHARE = 0.003
_PSS_S, _PSS_CALM_S = 0.9, 2.8
_CHANGED = 0.01  # of the resident memory


def _nobody(pid: int, rollup: bytes) -> None:
    """Stands in for a target that wants no texts."""


class MemoryReader(FileReader):
    def __init__(self, target: Target) -> None:
        super().__init__([SERIES[name] for name in _NAMES])
        self._target = target
        # A target that keeps books of each process gets the text that is read anyway.
        self._also: Callable[[int, bytes], None] = getattr(target, "saw_memory", _nobody)
        self._pss_share: float = getattr(target, "pss_share", _PSS_SHARE)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._meminfo = self.keep(f"{target.proc}/meminfo", 4096)
        self._next_pss_s = self._calm_until_s = 0.0
        self._known: tuple[frozenset[int], int] = frozenset(), 0  # at the last reading of PSS
        try:
            self._pss_bytes(target.pid)
        except (OSError, ValueError) as error:
            self._next_pss_s = self._calm_until_s = float("inf")
            self.gaps.append(
                Gap("memory of the tree without double counting (PSS)", reason_of(error))
            )

    def read(self) -> Sequence[float | None]:
        pids = list(self._target.pids())
        rss = self._tree_rss(pids)
        return [self._tree_pss(pids, rss), rss, self._available()]

    def _tree_pss(self, pids: Sequence[int], rss: int) -> float | None:
        start_s = time.monotonic()
        known, rss_then = self._known
        calm = known == frozenset(pids) and abs(rss - rss_then) <= _CHANGED * rss_then
        if start_s < (self._calm_until_s if calm else self._next_pss_s):
            return None
        total = 0.0
        for pid in pids:
            with contextlib.suppress(OSError, ValueError):
                total += self._pss_bytes(pid)
        end_s = time.monotonic()
        pause_s = (end_s - start_s) / self._pss_share
        self._next_pss_s = end_s + max(_PSS_S, pause_s)
        self._calm_until_s = end_s + max(_PSS_CALM_S, pause_s)
        self._known = frozenset(pids), rss
        return total

    def _pss_bytes(self, pid: int) -> float:
        text = procfs.read(f"{self._target.proc}/{pid}/smaps_rollup", 4096)
        self._also(pid, text)
        start = text.index(b"\nPss:") + 5
        return int(text[start : text.index(b"kB", start)]) * 1024

    def _tree_rss(self, pids: Sequence[int]) -> int:
        total = 0
        for pid in pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int(procfs.read(f"{self._target.proc}/{pid}/statm", 256).split()[1])
        return total * self._page_bytes

    def _available(self) -> float | None:
        text = self._meminfo.read()
        start = text.find(b"MemAvailable:")
        if start < 0:
            return None
        return int(text[start + 13 : text.index(b"kB", start)]) * 1024


PROBE = Probe("memory", "memory of the tree and the machine", MemoryReader, period_s=0.95)
