"""Requests of block devices of one profile: recorded in the helper process, named afterwards."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from jupyter_ioscope.block_trace import tracefs
from jupyter_ioscope.block_trace.devices import device_name
from jupyter_ioscope.block_trace.events import Lines
from jupyter_ioscope.block_trace.requests import Requests
from jupyter_ioscope.model.block import BlockIssuer, BlockTrace, requests_of
from jupyter_ioscope.model.profile import Gap

WHAT = "block-layer latency"
_READ_S = 0.05  # between two looks: a CPU's buffer holds some thousand events
# Of reading at a time: CPU, and what the clock may show where other programs take the cores. The
# thread states are read in between, and the end has a deadline.
_TURN_CPU_S, _TURN_S, _LAST_TURN_S = 0.02, 0.1, 2.0
_OTHERS = 8  # programs told by name
_US = 1e-6


class BlockWatch:
    """A trace in the helper process. Whatever it lacks becomes a gap."""

    def __init__(self, wanted: bool, proc: str, sys: str) -> None:
        self.gaps: list[Gap] = []
        self._proc = proc
        self._instance: tracefs.Instance | None = None
        self._lines, self._requests = Lines(), Requests()
        self._due_s = self._start_s = time.monotonic()
        if not wanted:
            return
        try:
            self._instance = tracefs.Instance(tracefs.find(proc, sys), proc=proc)
        except tracefs.NotHereError as error:
            self.gaps.append(Gap(WHAT, str(error)))

    def due_s(self) -> float:
        """When there is something to do, on the clock of `time.monotonic`; infinity for never."""
        return self._due_s if self._instance is not None else float("inf")

    def tick(self) -> None:
        """Read what has come, for a bounded time: the kernel counts what it then has to drop."""
        now_s = time.monotonic()
        if self._instance is not None and now_s >= self._due_s:
            self._due_s = now_s + _READ_S
            self._read(self._instance, _TURN_CPU_S, _TURN_S)

    def _read(self, instance: tracefs.Instance, cpu_s: float, wall_s: float) -> None:
        cpu_until_s, until_s = time.thread_time() + cpu_s, time.monotonic() + wall_s
        try:
            while piece := instance.read():
                self._requests.add(self._lines.events(piece))
                if time.thread_time() > cpu_until_s or time.monotonic() > until_s:
                    return
        except OSError as error:
            self.gaps.append(Gap(WHAT, f"the trace broke off: {error.strerror or error}"))
            self.close()

    def finish(self, threads: Iterable[tuple[int, int]]) -> dict[str, Any] | None:
        """End it; what was seen, ready for JSON. None where nothing was recorded.

        Args:
            threads: (process, thread) of all that belong to the profiled tree.
        """
        instance = self._instance
        if instance is None:
            return None
        instance.stop()
        seconds = time.monotonic() - self._start_s
        self._read(instance, _LAST_TURN_S, _LAST_TURN_S)
        if self._instance is None:
            return None  # it broke off
        lost = instance.lost()
        self.close()
        knows = tracefs.sees_own_pids(self._proc)
        if not knows:
            reason = "the trace counts processes as the machine does, and this container otherwise"
            self.gaps.append(Gap("who asked the block devices", reason))
        if lost:
            reason = f"{lost:,} events of requests came faster than they could be read"
            self.gaps.append(Gap("some requests of block devices", reason))
        return {
            **self._requests.summary(),
            "seconds": seconds,
            "lost": lost,
            "knows_issuers": knows,
            "helper": os.getpid(),
            "processes": {str(tid): pid for pid, tid in threads} if knows else {},
        }

    def close(self) -> None:
        """Remove the instance. Idempotent."""
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()


def sweep(proc: str, sys: str) -> None:
    """Remove the trace of a helper process that had to be killed."""
    with contextlib.suppress(tracefs.NotHereError):
        tracefs.remove_left_over(tracefs.find(proc, sys), proc)


def unpacked(
    packed: Mapping[str, Any] | None, pid: int, workers: Mapping[int, int], sys: str = "/sys"
) -> BlockTrace | None:
    """The trace that `BlockWatch.finish` packed, with devices and issuers named.

    Args:
        pid: the profiled process.
        workers: process id -> worker id.
    """
    if packed is None:
        return None
    names = {row["device"]: device_name(row["device"], sys) for row in packed["totals"]}
    return BlockTrace(
        seconds=packed["seconds"],
        events=packed["events"],
        lost=packed["lost"],
        unmatched=packed["unmatched"],
        knows_issuers=packed["knows_issuers"],
        requests=tuple(requests_of(row, names[row["device"]]) for row in packed["totals"]),
        issuers=_issuers(packed, names, pid, workers) if packed["knows_issuers"] else (),
    )


def _issuers(
    packed: Mapping[str, Any], names: Mapping[str, str], pid: int, workers: Mapping[int, int]
) -> tuple[BlockIssuer, ...]:
    processes = {int(tid): owner for tid, owner in packed["processes"].items()}
    whose = Whose(pid, workers, processes, packed["helper"])
    found: dict[tuple[str, str, str, int, str], BlockIssuer] = {}
    for row in packed["issuers"]:
        key = (names[row["device"]], row["operation"], *whose.of(row["tid"], row["name"]))
        one = BlockIssuer(
            *key,
            requests=row["requests"],
            bytes=row["bytes"],
            device_s=row["device_us"] * _US,
            queue_s=row["queue_us"] * _US,
            busy_s=row["busy_us"] * _US,
        )
        found[key] = _joined(found[key], one) if key in found else one
    return _told(list(found.values()))


class Whose:
    """Which part of the run a thread belongs to."""

    def __init__(
        self, pid: int, workers: Mapping[int, int], processes: Mapping[int, int], helper: int
    ) -> None:
        self._pid, self._workers, self._helper = pid, workers, helper
        self._processes = processes

    def of(self, tid: int, name: str) -> tuple[str, int, str]:
        """(role, worker, name) of a thread by its id. Of a process that nobody saw, the main thread
        is known by the process's id."""
        owner = self._processes.get(tid, tid)
        if owner == self._pid:
            return "consumer", -1, ""
        if owner in self._workers:
            return "worker", self._workers[owner], ""
        if owner == self._helper:
            return "other", -1, "ioscope"
        # A kernel worker's name tells its number and pool, which are others every time.
        name = name.partition("/")[0] if name.startswith("kworker/") else name
        return ("child" if tid in self._processes else "other"), -1, name


def _joined(a: BlockIssuer, b: BlockIssuer) -> BlockIssuer:
    return a._replace(
        requests=a.requests + b.requests,
        bytes=a.bytes + b.bytes,
        device_s=a.device_s + b.device_s,
        queue_s=a.queue_s + b.queue_s,
        busy_s=a.busy_s + b.busy_s,
    )


def _told(rows: list[BlockIssuer]) -> tuple[BlockIssuer, ...]:
    """Those who moved most first; programs beyond the first ones become one without a name."""
    rows.sort(key=lambda row: (-row.bytes, -row.requests, row))
    others = [row for row in rows if row.role in ("child", "other")]
    told = [row for row in rows if row.role not in ("child", "other")] + others[:_OTHERS]
    rest: dict[tuple[str, str], BlockIssuer] = {}
    for row in others[_OTHERS:]:
        row = row._replace(role="other", name="")
        key = row[:2]
        rest[key] = _joined(rest[key], row) if key in rest else row
    return (*told, *rest.values())
