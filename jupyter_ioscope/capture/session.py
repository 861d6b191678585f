"""One profile in the helper process: what is watched, on which beat, and what is handed back."""

from __future__ import annotations

import functools
import os
import platform
import random
import resource
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from jupyter_ioscope import registry
from jupyter_ioscope.capture import probes, rights
from jupyter_ioscope.capture.block import BlockWatch
from jupyter_ioscope.capture.gauges import NO_PROC, Gauges
from jupyter_ioscope.capture.harvest import pack_series, pack_threads
from jupyter_ioscope.capture.held_files import HeldFiles
from jupyter_ioscope.capture.probes._probe import Probe
from jupyter_ioscope.capture.process_use import ProcessUses
from jupyter_ioscope.capture.pyspy import find_py_spy
from jupyter_ioscope.capture.request import SamplerRequest
from jupyter_ioscope.capture.tree import Tree
from jupyter_ioscope.capture.two_pace import TwoPace
from jupyter_ioscope.capture.watch import Watch
from jupyter_ioscope.model.profile import Gap

_QUICK_LOOK_S = 0.1
_CLOSE_LOOK_S = 0.5
_COUNT_S, _COUNT_EARLY_S = 0.25, 0.08
_ATTACH_S = 0.45  # py-spy attaches within 0.04-0.16 s; longer means a very busy machine
_MIN_PERIOD_S, _MAX_PERIOD_S = 0.005, 1.0


class Session:
    """Watches the tree of `request.pid` until `stop`."""

    def __init__(self, request: SamplerRequest, proc: str, sys: str) -> None:
        self.proc, self.sys, self.pid = proc, sys, request.pid
        self._request = request
        self._cpu_s = _own_cpu_s()
        self.start_ns = time.monotonic_ns()
        self._period_s = min(_MAX_PERIOD_S, max(_MIN_PERIOD_S, 1.0 / max(request.rate_hz, 0.1)))
        self.gaps: list[Gap] = []
        self._tree: Tree | None = None
        self._watch: Watch | None = None
        self._uses = ProcessUses(proc, request.pid)
        self._held = HeldFiles(proc, (request.session_dir,))
        self._start_watching()
        self.rights = self._find_rights()
        self._pyspy: TwoPace | None = None
        self._children_cpu_s = _children_cpu_s()
        self._start_pyspy()
        self._gauges: Gauges | None = None
        now_s = time.monotonic()
        self._beat_s = now_s
        self._sample_due_s = self._quick_due_s = now_s
        self._close_due_s = now_s + _CLOSE_LOOK_S
        self._count_due_s = now_s
        self._attach_until_s = now_s + _ATTACH_S
        self._block = BlockWatch(request.block_trace, proc, sys)  # last: nothing can fail after it

    def _start_watching(self) -> None:
        if not os.path.isdir(f"{self.proc}/{self.pid}/task"):
            there = os.path.isdir(f"{self.proc}/self")
            reason = f"process {self.pid} is gone" if there else NO_PROC
            self.gaps.append(Gap("thread states and exact thread times", reason))
            return
        skip = frozenset({os.getpid()})
        self._tree = Tree(self.proc, self.pid, self._request.consumer_tid, skip)
        self._watch = Watch(self.proc, platform.machine())
        self._watch.update(self._tree.threads())
        self._watch.sample()

    def _find_rights(self) -> rights.Rights:
        if not os.path.isdir(f"{self.proc}/self"):
            return rights.Rights(False, NO_PROC, False, None, os.getpid(), "off")
        error = rights.may_read_memory(self.pid)
        yama = rights.yama_level(self.proc)
        reason = "" if error == 0 else rights.why_refused(self.pid, error, yama)
        return rights.Rights(
            attach=error == 0,
            reason=reason,
            syscall=rights.sees_calls(self.proc, self.pid),
            yama=yama,
            helper_pid=os.getpid(),
            stacks="off",
        )

    def _start_pyspy(self) -> None:
        self._no_stacks = ""
        if not self._request.stacks:
            return
        executable = find_py_spy()
        if not self.rights.attach:
            self._no_stacks = self.rights.reason
        elif executable is None:
            self._no_stacks = "py-spy is not installed: pip install py-spy"
        else:
            folder, rate_hz = self._request.session_dir, self._request.stack_rate_hz
            try:
                self._pyspy = TwoPace(executable, self.pid, folder, rate_hz)
            except OSError as error:
                self._no_stacks = f"py-spy could not be started: {error}"

    def pids(self) -> Iterable[int]:
        """All live processes of the tree (for the probes)."""
        return list(self._tree.processes) if self._tree is not None else [self.pid]

    def saw_memory(self, pid: int, rollup: bytes) -> None:
        """The probe of the tree's memory read a process: its private part comes along."""
        self._uses.saw_memory(pid, rollup)

    def settled(self) -> bool:
        """Whether it is known if py-spy works."""
        if self._pyspy is None or self._pyspy.settled():
            return True
        return time.monotonic() > self._attach_until_s

    def settled_rights(self) -> dict[str, Any]:
        if self._pyspy is not None and not self._pyspy.running():
            self._no_stacks = self._pyspy.stop() or "py-spy ended at once"
            self._pyspy = None
        stacks = "off"
        if self._request.stacks:
            stacks = "py-spy" if self._pyspy is not None else "in-process"
        return {**asdict(self.rights), "stacks": stacks}

    def due_in_s(self) -> float:
        """Time until there is something to do."""
        due_s = min(self._sample_due_s, self._count_due_s, self._block.due_s())
        return max(0.0, due_s - time.monotonic())

    def tick(self) -> None:
        """Do what is due."""
        now_s = until_s = time.monotonic()
        if now_s >= self._sample_due_s:
            self._sample(now_s)
            # What is due before the next sample is done now: to wake up for it takes longer.
            until_s = min(self._sample_due_s, now_s + _COUNT_EARLY_S)
        if until_s >= self._count_due_s:
            self._count_due_s = max(self._count_due_s, now_s) + _COUNT_S
            if self._watch is not None:
                self._watch.count()
                self._uses.count(self.pids())
                self._held.tick(self.pids())
            if self._pyspy is not None:
                self._pyspy.tick()
            self._read_gauges()
        self._block.tick()

    def _sample(self, now_s: float) -> None:
        if self._watch is not None and self._tree is not None:
            self._watch.sample()
            if now_s >= self._close_due_s:
                self._close_due_s = now_s + _CLOSE_LOOK_S
                self._tree.look_closely(self._watch.still())
                self._watch.update(self._tree.threads())
            elif now_s >= self._quick_due_s:
                self._quick_due_s = now_s + _QUICK_LOOK_S
                self._tree.look_quickly()
                self._watch.update(self._tree.threads())
        # A random instant in every period: a loop that beats at the same rate is still seen fairly.
        self._beat_s = max(self._beat_s + self._period_s, now_s - self._period_s)
        self._sample_due_s = max(now_s + 0.001, self._beat_s + random.random() * self._period_s)

    def _read_gauges(self) -> None:
        if self._gauges is None:
            self._gauges = Gauges(_probes(), target=self)
            self._gauges.read(everything=True)
        else:
            self._gauges.read()

    def newest(self) -> dict[str, float]:
        return self._gauges.newest() if self._gauges is not None else {}

    def stop(self) -> dict[str, Any]:
        """End everything; what was seen, ready for JSON."""
        if self._gauges is None:
            self._read_gauges()
        assert self._gauges is not None
        self._gauges.finish_opening()
        self._gauges.read(everything=True)
        seen = [(one.pid, one.tid) for one in self._watch.all()] if self._watch is not None else []
        block = self._block.finish(seen)
        threads: list[dict[str, Any]] = []
        if self._watch is not None and self._tree is not None:
            self._watch.count()
            self._uses.count(self.pids(), last=True)
            threads = pack_threads(self._watch, self._tree, self.start_ns, platform.machine())
            self._note_watch_gaps(self._watch)
        if self._pyspy is not None:
            self._no_stacks = self._pyspy.stop()
        packed = {
            "threads": threads,
            "held_files": self._held.packed(),
            "processes": self._uses.packed(),
            "series": [pack_series(item) for item in self._gauges.series() if len(item.values)],
            "gaps": [*self.gaps, *self._gauges.gaps(), *self._block.gaps],
            "block": block,
            "gpus": self._gauges.gpus(),
            "stack_files": self._pyspy.files if self._pyspy is not None else [],
            "no_stacks": self._no_stacks,
            "attach": self.rights.attach,
        }
        self.close()
        packed["sampler_cpu_s"] = _own_cpu_s() - self._cpu_s
        packed["stacks_cpu_s"] = _children_cpu_s() - self._children_cpu_s
        return packed

    def _note_watch_gaps(self, watch: Watch) -> None:
        if watch.refused:
            self.gaps.append(
                Gap("some threads", f"{watch.refused} could not be opened (limit on open files?)")
            )
        if watch.thinned:
            share = 2**watch.thinned
            self.gaps.append(
                Gap("thread states at full rate", f"a long profile: one of {share} samples kept")
            )
        unseen = not any(thread.sees_calls for thread in watch.all())
        if unseen and not self.rights.syscall:
            self.gaps.append(
                Gap(
                    "reasons of waits, exactly",
                    "the right to see system calls is missing: states are from the scheduler only",
                )
            )

    def close(self) -> None:
        if self._gauges is not None:
            self._gauges.close()
        if self._watch is not None:
            self._watch.close()
        self._uses.close()
        self._held.close()
        self._block.close()
        if self._pyspy is not None and self._pyspy.running():
            self._pyspy.stop()


@functools.cache
def _probes() -> list[Probe]:
    return registry.plugins(probes, "PROBE", "ioscope.probes")


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
