"""Stacks of a profile: py-spy's, or those that a thread inside each process takes itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from jupyter_ioscope.capture import frames as cutting
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.pyspy import RawFrame, RawStack
from jupyter_ioscope.model.readings import Frame, Stack, Stacks

_FLUSH_S = 1.0
_FLUSH_SHARE = 0.01  # of the time, at most
_MAX_STACKS = 20_000  # different ones a process; further ones are counted under one name
_TOO_MANY = (("(too many different stacks)", "", 0),)

# Names that IPython gives to compiled cells, for those that its map does not know.
_CELL_FILE = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$|^<ipython-input-")

Place = tuple[CodeType, int]


def stack_file(session_dir: str) -> str:
    """Where the calling process's `InProcessStacks` shall write, in the profile's folder."""
    return os.path.join(session_dir, f"stacks-{os.getpid()}-{time.monotonic_ns()}.json")


class InProcessStacks:
    """Samples the stacks of its own process from a daemon thread.

    It sees a thread more often where the interpreter lock is released than it is there, and it
    cannot tell running from blocked: a fallback for where py-spy may not attach.

    Args:
        path: JSON file that is rewritten every second and at `stop`, see `stack_file`.
        rate_hz: samples a second.
        threads: identifiers (`threading.get_ident`) to look at; None for all.
    """

    def __init__(self, path: str, rate_hz: float, threads: Iterable[int] | None = None) -> None:
        self._path, self._rate_hz = path, rate_hz
        self._wanted = None if threads is None else frozenset(threads)
        self._counts: dict[tuple[int, tuple[Place, ...]], int] = {}
        self._too_many: dict[int, int] = {}
        self._names: dict[int, tuple[int, str]] = {}
        self._stopping = threading.Event()
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ioscope stacks", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End and write the file. Never raises; harmless in a forked child and when repeated."""
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._pid:
            return
        self._stopping.set()
        thread.join(2.0)

    def _run(self) -> None:
        period_s = 1.0 / max(self._rate_hz, 0.1)
        flush_due_s = time.monotonic() + _FLUSH_S
        try:
            while not self._stopping.wait(period_s):
                self._sample()
                if time.monotonic() >= flush_due_s:
                    began_s = time.monotonic()
                    self._flush()
                    took_s = time.monotonic() - began_s
                    flush_due_s = began_s + max(_FLUSH_S, took_s / _FLUSH_SHARE)
        finally:
            self._flush()

    def _sample(self) -> None:
        frames = sys._current_frames()
        # Its own frame would make a ring with `frames`, which kept the user's frames, and what they
        # hold, until the garbage collector comes.
        frames.pop(threading.get_ident(), None)
        for ident, frame in frames.items():
            if self._wanted is not None and ident not in self._wanted:
                continue
            if ident not in self._names:
                self._learn_names()
            if cutting.serves_notebook(self._names.get(ident, (0, ""))[1]):
                continue
            key = (ident, tuple(_places(frame)))
            if key in self._counts or len(self._counts) < _MAX_STACKS:
                self._counts[key] = self._counts.get(key, 0) + 1
            else:
                self._too_many[ident] = self._too_many.get(ident, 0) + 1

    def _learn_names(self) -> None:
        main = threading.main_thread()
        for thread in threading.enumerate():
            if thread.ident is not None:
                # After a plain fork Python still has the parent's number of the main thread.
                forked = thread is main and sys.platform == "linux"
                tid = os.getpid() if forked else thread.native_id or 0
                self._names[thread.ident] = (tid, thread.name)

    def _flush(self) -> None:
        # A full disk or a removed folder must not hurt the process that is looked at.
        with contextlib.suppress(OSError, ValueError):
            partial = f"{self._path}.part"
            with open(partial, "w", encoding="utf-8", errors="backslashreplace") as file:
                json.dump({"pid": self._pid, "stacks": list(self._rows())}, file)
            os.replace(partial, self._path)

    def _rows(self) -> Iterator[list[Any]]:
        for (ident, places), count in self._counts.items():
            frames = [
                (getattr(code, "co_qualname", code.co_name), code.co_filename, line)
                for code, line in reversed(places)
            ]
            yield [*self._names.get(ident, (0, "")), frames, count]
        for ident, count in self._too_many.items():
            yield [*self._names.get(ident, (0, "")), _TOO_MANY, count]


def _places(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0
        frame = frame.f_back


def read_in_process(session_dir: str) -> list[RawStack]:
    """All stacks that the processes of a profile wrote; unreadable files are passed over."""
    found: list[RawStack] = []
    for path in sorted(Path(session_dir).glob("stacks-*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(path.read_text(encoding="utf-8"))
            found += [
                RawStack(content["pid"], tid, name, tuple(RawFrame(*f) for f in frames), count)
                for tid, name, frames, count in content["stacks"]
            ]
    return found


def build(
    raw: Iterable[RawStack],
    *,
    source: str,
    rate_hz: float,
    pid: int,
    consumer_tid: int,
    workers: Mapping[int, int],
    cells: CellMap,
    without: frozenset[int] = frozenset(),
) -> Stacks:
    """Cut stacks to the user's part, name cells and workers, merge equal ones.

    Args:
        raw: stacks as sampled.
        source: "py-spy" or "in-process".
        rate_hz: samples a second that were asked for.
        pid: the watched process.
        consumer_tid: thread id of its loop.
        workers: process id -> worker id.
        cells: names cells.
        without: processes to leave out.
    """
    frames: dict[Frame, int] = {}
    counted = squared = 0
    merged: dict[tuple[str, int, int, str, tuple[int, ...]], int] = {}
    for stack in raw:
        if stack.pid in without or cutting.serves_notebook(stack.thread):
            continue
        role = _role(stack, pid, consumer_tid, workers)
        kept = _cut(stack, role, cells)
        if not kept:
            continue
        indices = tuple(frames.setdefault(_named(f, cells), len(frames)) for f in kept)
        key = (role, workers.get(stack.pid, -1), stack.pid, stack.thread, indices)
        merged[key] = merged.get(key, 0) + stack.samples * stack.weight
        counted += stack.samples * stack.weight
        squared += stack.samples * stack.weight**2
    stacks = tuple(
        Stack(*key, count) for key, count in sorted(merged.items(), key=lambda item: -item[1])
    )
    certain = counted / squared if squared else 1.0
    return Stacks(source, rate_hz, True, tuple(frames), stacks, certain)


def _role(stack: RawStack, pid: int, consumer_tid: int, workers: Mapping[int, int]) -> str:
    if any(frame.name.endswith("_pin_memory_loop") for frame in stack.frames):
        return "pin_memory"
    main = stack.tid == stack.pid or (not stack.tid and stack.thread == "MainThread")
    if stack.pid in workers:
        if main:
            return "worker"
        return "feeder" if stack.thread.startswith("QueueFeederThread") else "other"
    unnamed_main = not stack.tid and main and consumer_tid == pid
    if stack.pid == pid and (stack.tid == consumer_tid or unnamed_main):
        return "consumer"
    return "other"


def _cut(stack: RawStack, role: str, cells: CellMap) -> tuple[RawFrame, ...]:
    def in_cell(file: str) -> bool:
        return file in cells or _CELL_FILE.search(file) is not None

    if role == "consumer":
        return cutting.of_consumer(stack.frames, in_cell)
    if role == "worker":
        return cutting.of_worker(stack.frames, in_cell)
    if stack.thread == "MainThread":
        return cutting.of_worker(stack.frames, in_cell)
    return cutting.of_thread(stack.frames, in_cell)


def _named(frame: RawFrame, cells: CellMap) -> Frame:
    file, cell = cells.name(frame.file)
    return Frame(frame.name, file, frame.line, cell)
