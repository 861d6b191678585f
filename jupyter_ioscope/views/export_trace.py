"""The events of a profile for Perfetto and Chrome's trace viewer (Trace Event Format)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.views.quantities import Curve
from jupyter_ioscope.views.timeline import ROWS, curves
from jupyter_ioscope.views.words import clean

# Sampled states lie on a row of their own below their thread: numbers that no thread has.
_STATES_TID = 1 << 23  # above the largest pid_max of Linux (2^22)

Event = dict[str, Any]


def trace_events(profile: Profile) -> Iterator[Event]:
    """Names, slices and counters; times in microseconds from the start of the profile.

    None is negative: Perfetto drops such events and reports that data is lost.
    """
    yield from _names(profile)
    yield from _batches(profile)
    yield from _fetches(profile)
    for thread in profile.threads:
        yield from _states(profile, thread)
    for pause in profile.gc_pauses:
        args = {"generation": pause.generation, "collected": pause.collected}
        yield _slice(
            profile, "garbage collection", pause.pid, pause.pid, pause.start_ns, pause.end_ns, args
        )
    yield from _counters(profile)


def _names(profile: Profile) -> Iterator[Event]:
    pids = {profile.pid: clean(profile.label, 80) or "consumer"}
    for info in sorted(profile.workers, key=lambda info: info.worker):
        pids.setdefault(info.pid, f"worker {info.worker}")
    for thread in profile.threads:
        pids.setdefault(thread.pid, f"{thread.role} {thread.pid}")
    for order, (pid, name) in enumerate(pids.items()):
        yield _meta("process_name", pid, 0, name=name)
        yield _meta("process_sort_index", pid, 0, sort_index=order)
    yield _meta("thread_name", profile.pid, profile.consumer_tid, name="batches")
    for pid in dict.fromkeys(row.pid for row in profile.fetches if row.worker >= 0):
        yield _meta("thread_name", pid, pid, name="fetches")
    for thread in profile.threads:
        name = f"states of {clean(thread.name, 60) or thread.role}"  # a viewer cuts long ones
        yield _meta("thread_name", thread.pid, _STATES_TID + thread.tid, name=name)


def _meta(kind: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _slice(
    profile: Profile,
    name: str,
    pid: int,
    tid: int,
    start_ns: int,
    end_ns: int,
    args: dict[str, Any],
) -> Event:
    start_ns = max(start_ns, profile.start_ns)  # what went on already when the profile began
    return {
        "ph": "X",
        "name": name,
        "cat": "ioscope",
        "pid": pid,
        "tid": tid,
        "ts": (start_ns - profile.start_ns) / 1e3,
        "dur": max(0, end_ns - start_ns) / 1e3,
        "args": args,
    }


def _batches(profile: Profile) -> Iterator[Event]:
    pid, tid = profile.pid, profile.consumer_tid
    for row in profile.batches:
        args = {"batch": row.batch, "epoch": row.epoch, "worker": row.worker}
        yield _slice(profile, "wait", pid, tid, row.wait_start_ns, row.wait_end_ns, args)
        yield _slice(profile, "step", pid, tid, row.wait_end_ns, row.step_end_ns, args)


def _fetches(profile: Profile) -> Iterator[Event]:
    for row in profile.fetches:
        tid = row.pid if row.worker >= 0 else profile.consumer_tid
        args = {"task": row.task, "samples": row.samples, "cpu_ms": row.cpu_ns / 1e6}
        yield _slice(profile, "fetch", row.pid, tid, row.start_ns, row.end_ns, args)
        if row.collate_ns > 0:
            start = max(row.start_ns, row.end_ns - row.collate_ns)
            yield _slice(profile, "collate", row.pid, tid, start, row.end_ns, {})


def _states(profile: Profile, thread: ThreadReadings) -> Iterator[Event]:
    """Runs of equal states, each until the next sample."""
    ends = (*thread.sample_ns[1:], thread.last_ns)
    start = -1
    for at, (when, state) in enumerate(zip(thread.sample_ns, thread.states, strict=True)):
        start = when if start < 0 else start
        if at + 1 == len(thread.states) or thread.states[at + 1] != state:
            tid = _STATES_TID + thread.tid
            if ends[at] > profile.start_ns:
                yield _slice(profile, STATES[state], thread.pid, tid, start, ends[at], {})
            start = -1


def _counters(profile: Profile) -> Iterator[Event]:
    for row in ROWS:
        if row.key == "wait":
            continue  # every wait is a slice
        for label, curve in curves(profile, row):
            for ts, value in _from_start(profile, curve):
                args = {row.unit: value / row.unit_size}
                yield {
                    "ph": "C", "name": label, "pid": profile.pid, "tid": 0, "ts": ts,
                    "args": args,
                }  # fmt: skip


def _from_start(profile: Profile, curve: Curve) -> list[tuple[float, float]]:
    """Microseconds and finite values; the last one from before the start holds at the start."""
    found: list[tuple[float, float]] = []
    for when, value in zip(curve.time_ns, curve.values, strict=True):
        if math.isfinite(value):
            ts = max(0.0, (when - profile.start_ns) / 1e3)
            if found and found[-1][0] == ts == 0:
                found.pop()
            found.append((ts, value))
    return found
