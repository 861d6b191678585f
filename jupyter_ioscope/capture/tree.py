"""The process tree below the watched process, without the profiler's own processes."""

from __future__ import annotations

import os
import time

from jupyter_ioscope.capture import procfs

_YOUNG_NS = 2_000_000_000


class Process:
    """One process of the tree."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.first_ns = time.monotonic_ns()
        self.tids: list[int] = []
        self.gil: tuple[tuple[int, int], ...] = ()
        self.looks = 0


class Tree:
    """Finds processes and threads. A process stays in the tree after its parent has died."""

    def __init__(self, proc: str, root: int, root_tid: int, skip: frozenset[int]) -> None:
        self._proc, self.root, self._root_tid = proc, root, root_tid
        self._skip = skip
        self.processes: dict[int, Process] = {root: Process(root)}
        self.past: dict[int, Process] = {}
        self._has_children_files = os.path.exists(f"{proc}/{root}/task/{root}/children")
        self.look_closely()

    def look_quickly(self) -> None:
        """Cheap enough for 10 Hz: children of main threads and of the consumer, and the threads
        of young processes."""
        if not self._has_children_files:
            return
        for pid in list(self.processes):
            tids = {pid, self._root_tid} if pid == self.root else {pid}
            self._add_children(pid, tids)
        now = time.monotonic_ns()
        for process in list(self.processes.values()):
            if now - process.first_ns < _YOUNG_NS:
                self._list_threads(process)

    def look_closely(self, still: frozenset[tuple[int, int]] = frozenset()) -> None:
        """All processes and all threads; for 2 Hz. Those of the `still` threads, (pid, tid), cannot
        have made a process since the last time: they are not asked for theirs."""
        if not self._has_children_files:
            self._add_from_parents()
        for process in list(self.processes.values()):
            self._list_threads(process)
            if process.pid in self.processes and self._has_children_files:
                pid = process.pid
                self._add_children(pid, {tid for tid in process.tids if (pid, tid) not in still})
            process.looks += 1
            # Not at the first look: a process may not have loaded its interpreter yet.
            if not process.gil and (process.looks > 1 or process.pid == self.root):
                process.gil = procfs.interpreter_data(self._proc, process.pid)

    def threads(self) -> set[tuple[int, int]]:
        return {(pid, tid) for pid, process in self.processes.items() for tid in process.tids}

    def gil(self, pid: int) -> tuple[tuple[int, int], ...]:
        """Ranges of the interpreter's data. A forked process has its parent's."""
        process = self.processes.get(pid) or self.past.get(pid)
        if process is not None and process.gil:
            return process.gil
        return self.processes[self.root].gil if self.root in self.processes else ()

    def _add(self, pid: int) -> None:
        if pid not in self.processes and pid not in self._skip:
            self.processes[pid] = process = Process(pid)
            self._list_threads(process)

    def _add_children(self, pid: int, tids: set[int]) -> None:
        for tid in tids:
            for child in procfs.children(self._proc, pid, tid):
                self._add(child)

    def _add_from_parents(self) -> None:
        below = set(self.processes)
        parents = procfs.parents(self._proc)
        grown = True
        while grown:
            more = {p for p, parent in parents.items() if parent in below} - below - self._skip
            below |= more
            grown = bool(more)
        for pid in below:
            self._add(pid)

    def _list_threads(self, process: Process) -> None:
        process.tids = procfs.threads(self._proc, process.pid)
        if not process.tids and process.pid != self.root:
            self.past[process.pid] = self.processes.pop(process.pid)
