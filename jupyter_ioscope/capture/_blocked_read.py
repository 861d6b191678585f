"""What the processes of a profile noted about their blocked threads, judged after the clock."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_ioscope.capture import stacks, syscalls
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.pyspy import RawFrame, RawStack
from jupyter_ioscope.capture.states import Ranges, classify
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks
from jupyter_ioscope.model.readings import STATES, Frame

Seen = tuple[int, int, int, int, int]  # tid, key, stack, time, turns


def blocked_file(folder: str) -> str:
    """Where the calling process's `BlockedSampler` shall write, in the profile's folder."""
    return os.path.join(folder, f"blocked-{os.getpid()}-{time.monotonic_ns()}.jsonl")


@dataclass
class ProcessNotes:
    """All that one process wrote. Counts are of instants, `cpu_ns` is what noting them used."""

    pid: int = 0
    keys: list[tuple[str, str, str, str]] = field(default_factory=list)
    stacks: list[tuple[RawFrame, ...]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    gil: Ranges = ()
    rate_hz: float = 0.0
    instants: int = 0
    contended: int = 0
    missed: int = 0
    cpu_ns: int = 0


def read_blocked(folder: str) -> list[ProcessNotes]:
    """The notes of every process. A damaged line (a process killed while writing) ends a file."""
    found = []
    for path in sorted(Path(folder).glob("blocked-*.jsonl")):
        notes = ProcessNotes()
        parts: list[tuple[float, list[Seen]]] = []
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
                parts.append(_add(notes, json.loads(text)))
        for rate_hz, seen in parts:
            notes.seen += _thinned(seen, rate_hz / notes.rate_hz if notes.rate_hz else 1.0)
        if notes.instants:
            found.append(notes)
    return found


def _add(notes: ProcessNotes, line: Mapping[str, Any]) -> tuple[float, list[Seen]]:
    keys = [(str(a), str(b), str(c), str(d)) for a, b, c, d in line["keys"]]
    frames = [tuple(RawFrame(*place) for place in stack) for stack in line["stacks"]]
    seen = [(int(a), int(b), int(c), int(d), int(e)) for a, b, c, d, e in line["seen"]]
    notes.keys += keys
    notes.stacks += frames
    notes.names.update({int(tid): str(name) for tid, name in line["names"].items()})
    notes.gil = tuple((int(a), int(b)) for a, b in line["gil"] or ()) or notes.gil
    notes.pid, notes.rate_hz = int(line["pid"]), float(line["rate_hz"])
    notes.instants, notes.contended = int(line["instants"]), int(line["contended"])
    notes.missed, notes.cpu_ns = int(line["missed"]), int(line["cpu_ns"])
    return notes.rate_hz, seen


def _thinned(seen: list[Seen], times: float) -> list[Seen]:
    """Instants of a faster beat, so that each stands for as much time as the later ones."""
    every = max(1, round(times))
    instants = sorted({row[3] for row in seen})
    kept = set(instants[::every])
    return [row for row in seen if row[3] in kept]


def build_blocked(
    notes: Iterable[ProcessNotes],
    *,
    pid: int,
    consumer_tid: int,
    workers: Mapping[int, int],
    cells: CellMap,
) -> BlockedStacks | None:
    """Stacks cut to the user's part and named as `stacks.build` does it, with their states.

    Args:
        notes: as `read_blocked` gives them.
        pid: the watched process.
        consumer_tid: thread id of its loop.
        workers: process id -> worker id.
        cells: names cells.
    """
    every = list(notes)
    own = next((item.gil for item in every if item.pid == pid and item.gil), ())
    frames: dict[Frame, int] = {}
    merged: dict[tuple[str, int, int, int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for item in every:
        named = _Names(item, pid, consumer_tid, workers, cells, frames)
        states = [_state(key, item.gil or own) for key in item.keys]
        calls = [_call(state, key) for state, key in zip(states, item.keys, strict=True)]
        for tid, key, stack, when, turns in item.seen:
            if key >= len(states) or stack >= len(item.stacks) or states[key] == "running":
                continue
            known = named(tid, stack)
            if known is None:
                continue
            role, cut = known
            call = calls[key]
            whole = (*cut, frames.setdefault(call, len(frames))) if call else cut
            state = STATES.index(states[key])
            place = (role, workers.get(item.pid, -1), item.pid, state, whole)
            merged.setdefault(place, []).append((when, turns))
    if not every:
        return None
    found = [
        BlockedStack(*place, tuple(when for when, _ in rows), tuple(turn for _, turn in rows))
        for place, rows in ((place, sorted(rows)) for place, rows in merged.items())
    ]
    found.sort(key=lambda row: -len(row.seen_ns))
    return BlockedStacks(min(item.rate_hz for item in every), tuple(frames), tuple(found))


class _Names:
    """(thread, number of its stack) -> (role, frames), cut and named; None for what is dropped."""

    def __init__(
        self,
        notes: ProcessNotes,
        pid: int,
        consumer_tid: int,
        workers: Mapping[int, int],
        cells: CellMap,
        frames: dict[Frame, int],
    ) -> None:
        self._notes, self._frames = notes, frames
        self._pid, self._consumer_tid = pid, consumer_tid
        self._workers, self._cells = workers, cells
        self._known: dict[tuple[int, int], tuple[str, tuple[int, ...]] | None] = {}

    def __call__(self, tid: int, stack: int) -> tuple[str, tuple[int, ...]] | None:
        key = (tid, stack)
        if key not in self._known:
            self._known[key] = self._cut(tid, stack)
        return self._known[key]

    def _cut(self, tid: int, stack: int) -> tuple[str, tuple[int, ...]] | None:
        notes = self._notes
        name = notes.names.get(tid, "")
        raw = RawStack(notes.pid, tid, name, notes.stacks[stack], 1)
        built = stacks.build(
            [raw],
            source="in-process",
            rate_hz=notes.rate_hz,
            pid=self._pid,
            consumer_tid=self._consumer_tid,
            workers=self._workers,
            cells=self._cells,
        )
        if not built.stacks:
            return None
        only = built.stacks[0]
        numbers = tuple(
            self._frames.setdefault(built.frames[index], len(self._frames)) for index in only.frames
        )
        return only.role, numbers


def _state(key: tuple[str, str, str, str], gil: Ranges) -> str:
    return classify(*key, gil, platform.machine())


_NAMED_STATES = {"gil": "[GIL]", "page_fault": "[page fault]"}


def _call(state: str, key: tuple[str, str, str, str]) -> Frame | None:
    """The wait itself as the innermost frame; None where its name is not known."""
    if state in _NAMED_STATES:
        return Frame(_NAMED_STATES[state], "", 0)
    _, call, _, link = key
    number = call.split(" ", 1)[0]
    name = syscalls.names(platform.machine()).get(int(number), "") if number.isdigit() else ""
    if state == "lock":
        if not name:  # a futex without the private flag
            return Frame("[lock shared between processes]", "", 0)
        return Frame(f"[{name}] {link}".strip(), "", 0)
    if state == "futex":
        return Frame("[lock of this process]", "", 0)
    return Frame(f"[{name}]", "", 0) if name else None
