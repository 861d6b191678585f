"""Collects the consumer's side of a profile: who iterates what, when it waited, when it worked.

Everything here runs inside the user's loop, so it does little: two clock readings and a row of
numbers a batch, and the thread's CPU time, of short batches now and then only (see `batch_rows`).
It draws no random numbers and never touches the batch.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import time
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jupyter_ioscope.capture.batch_rows import (
    END_CPU,
    NOT_READ,
    SHORT_LIGHT,
    SHORT_NS,
    STEP_CPU,
    STEP_END,
    THREAD,
    WAIT_END,
    WAIT_START,
    WIDTH,
    fill_short,
)
from jupyter_ioscope.capture.sample_checksums import Note
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.model.records import Batch, Epoch, Fetch, LoaderInfo

log = logging.getLogger("ioscope")


class OpenEpoch:
    """One pass over a loader while it is recorded."""

    __slots__ = (
        "batch_start_cpu_ns",
        "batch_start_ns",
        "end_ns",
        "epoch",
        "iter_end_ns",
        "iter_start_ns",
        "last_row",
        "light",
        "loader",
        "resets",
        "tasks",
    )

    def __init__(self, epoch: int, loader: int, iter_start_ns: int, resets: int) -> None:
        self.epoch = epoch
        self.loader = loader
        self.iter_start_ns = iter_start_ns
        self.iter_end_ns = 0
        self.end_ns: int | None = None
        self.resets = resets  # how often this iterator was reset before (persistent workers)
        self.batch_start_ns = 0
        self.batch_start_cpu_ns = 0
        self.last_row = -1  # where the row of this epoch's newest batch begins, -1 without one
        self.tasks = 0
        self.light = 0  # so many batches to come are read by the clock only


# One row a batch, one after another in an array (no objects for the garbage collector to walk),
# changed until its step has ended.
_pack = struct.Struct(f"{WIDTH}q").pack
_clock_ns, _thread_ns, _thread_id = time.monotonic_ns, time.thread_time_ns, threading.get_ident


class Recorder:
    """Records of one profile. `on_limit` is called once, from the loop, at `max_batches`."""

    def __init__(
        self,
        session_dir: str,
        max_batches: int | None = None,
        on_limit: Callable[[], None] | None = None,
    ) -> None:
        self.session_dir = session_dir
        self.pid = os.getpid()
        self.active = True
        self._rows = array("q")
        self.fetches: list[Fetch] = []
        self.sample_notes: list[tuple[int, Note]] = []  # (number of the loader, note)
        self.epochs: list[OpenEpoch] = []
        self.loaders: list[LoaderInfo] = []
        self.gaps: list[Gap] = []
        self.worker_pids: dict[int, int] = {}
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}  # by id(loader)
        self.snapshots: list[Any] = []  # copies of the loaders, without their iterators
        self._native_ids: dict[int, int] = {}
        self._max_batches = max_batches
        self._on_limit = on_limit
        self._lock = threading.Lock()

    def recording_here(self) -> bool:
        """False in forked children (which inherit the patches) and after the end."""
        return self.active and os.getpid() == self.pid

    def broke(self, error: BaseException) -> None:
        """A failure of our own: stop recording, keep what is there, let the loop go on."""
        log.warning("ioscope stopped recording", exc_info=error)
        self.active = False
        self.gaps.append(Gap("batches after an internal error", f"{type(error).__name__}: {error}"))

    def loader_number(
        self,
        loader: Any,
        describe: Callable[[int], LoaderInfo],
        snapshot: Callable[[Any], Any] = lambda _: None,
    ) -> int:
        """The number of a loader within the profile; described when first met.

        Only a weak reference is kept: a loader must end its workers when the user drops it.
        `snapshot` makes the copy that later comparisons start from.
        """
        known = self._number_of(loader)
        if known is not None:
            return known
        # Not under the lock: they run the user's code (a dataset's `__len__`, for one), which may
        # iterate another loader.
        info, copy = describe(-1), snapshot(loader)
        with self._lock:
            known = self._number_of(loader)
            if known is not None:
                return known
            number = len(self.loaders)
            self._numbers[id(loader)] = (weakref.ref(loader), number)
            self.loaders.append(replace(info, loader=number))
            self.snapshots.append(copy)
            return number

    def _number_of(self, loader: Any) -> int | None:
        known = self._numbers.get(id(loader))
        return known[1] if known is not None and known[0]() is loader else None

    def open_epoch(self, loader: int, start_ns: int, resets: int = 0) -> OpenEpoch:
        with self._lock:
            epoch = OpenEpoch(len(self.epochs), loader, start_ns, resets)
            self.epochs.append(epoch)
            return epoch

    def wait_begins(self, epoch: OpenEpoch) -> None:
        """The consumer enters `next()`; the step with the batch before is over."""
        now_ns = _clock_ns()
        light = epoch.light
        cpu_ns = NOT_READ if light else _thread_ns()
        at = epoch.last_row
        if at >= 0:
            rows = self._rows
            if rows[at + STEP_END] < 0:
                rows[at + STEP_END] = now_ns
                if light:
                    if now_ns - rows[at + WAIT_START] >= SHORT_NS:
                        light, cpu_ns = 0, _thread_ns()
                elif rows[at + END_CPU] != NOT_READ and rows[at + THREAD] == _thread_id():
                    rows[at + STEP_CPU] = cpu_ns - rows[at + END_CPU]
                    if now_ns - rows[at + WAIT_START] < SHORT_NS:
                        light, cpu_ns = SHORT_LIGHT, NOT_READ
        elif not epoch.iter_end_ns:
            epoch.iter_end_ns = now_ns
        epoch.light = light - 1 if light else 0
        epoch.batch_start_cpu_ns = cpu_ns
        epoch.batch_start_ns = now_ns

    def wait_ends(
        self, epoch: OpenEpoch, samples: int, worker: int, task: int, waited_ns: int | None = None
    ) -> None:
        """The consumer leaves `next()` with a batch.

        `waited_ns` is given for a group of rows: that much of the time was waiting, the rest
        belongs to the step that follows.
        """
        now_ns, wait_cpu_ns, cpu_ns = _clock_ns(), 0, NOT_READ
        if epoch.batch_start_cpu_ns != NOT_READ:
            cpu_ns = _thread_ns()
            wait_cpu_ns = cpu_ns - epoch.batch_start_cpu_ns
        if waited_ns is not None:
            now_ns = epoch.batch_start_ns + waited_ns
        thread = _thread_id()
        if thread not in self._native_ids:
            self._native_ids[thread] = threading.get_native_id()
        rows = self._rows
        epoch.last_row = at = len(rows)
        epoch.tasks += 1
        rows.frombytes(
            _pack(
                epoch.epoch,
                epoch.loader,
                epoch.batch_start_ns,
                now_ns,
                -1,
                wait_cpu_ns,
                0,
                samples,
                worker,
                task,
                cpu_ns,
                thread,
            )
        )
        if self._max_batches is not None and at >= (self._max_batches - 1) * WIDTH:
            self.active = False
            if self._on_limit is not None and os.getpid() == self.pid:
                self._on_limit()

    def consumer_tid(self) -> int | None:
        """Native id of the thread that received most batches; None without batches."""
        counts = Counter(self._rows[THREAD::WIDTH])
        return self._native_ids.get(counts.most_common(1)[0][0]) if counts else None

    def epoch_ends(self, epoch: OpenEpoch) -> None:
        epoch.end_ns = time.monotonic_ns()

    def progress(self, window_s: float = 1.0) -> tuple[int, float, float]:
        """(batches so far, batches per second, fraction of time waiting), the last two newest."""
        now_ns = time.monotonic_ns()
        since_ns = now_ns - int(window_s * 1e9)
        count = waited_ns = 0
        rows = self._rows
        for at in range(len(rows) - WIDTH, -1, -WIDTH):
            if rows[at + WAIT_END] < since_ns:
                break
            count += 1
            waited_ns += rows[at + WAIT_END] - max(rows[at + WAIT_START], since_ns)
        if self.epochs and self.epochs[-1].end_ns is None:
            epoch = self.epochs[-1]
            newest = self.wait_end_ns(epoch)
            if epoch.batch_start_ns > newest:  # blocked in next() right now
                waited_ns += now_ns - max(epoch.batch_start_ns, since_ns)
        started_ns = self.epochs[0].iter_start_ns if self.epochs else now_ns
        span_ns = max(1, min(now_ns - started_ns, now_ns - since_ns))
        return len(rows) // WIDTH, count / span_ns * 1e9, min(1.0, waited_ns / span_ns)

    def batches(self) -> tuple[Batch, ...]:
        """The finished records. A last step that nobody ended (a loop that was left) is empty."""
        rows = [row.tolist() for row in self._each_row()]
        fill_short(rows)
        return tuple(
            Batch(
                batch=number,
                epoch=row[0],
                loader=row[1],
                wait_start_ns=row[2],
                wait_end_ns=row[3],
                step_end_ns=row[4] if row[4] >= 0 else row[3],
                wait_cpu_ns=row[5],
                step_cpu_ns=row[6],
                samples=row[7],
                worker=row[8],
                task=row[9],
            )
            for number, row in enumerate(rows)
        )

    def _each_row(self) -> Iterator[array[int]]:
        for at in range(0, len(self._rows), WIDTH):
            yield self._rows[at : at + WIDTH]

    def wait_end_ns(self, epoch: OpenEpoch) -> int:
        """When the newest batch of an epoch came; 0 before its first."""
        return self._rows[epoch.last_row + WAIT_END] if epoch.last_row >= 0 else 0

    def newest_thread(self) -> int:
        """Python's number of the thread that received the newest batch; 0 before the first."""
        return self._rows[-1] if self._rows else 0

    def closed_epochs(self, end_ns: int) -> tuple[Epoch, ...]:
        return tuple(
            Epoch(
                item.epoch, item.loader, item.iter_start_ns, item.iter_end_ns or end_ns, item.end_ns
            )
            for item in self.epochs
        )
