"""Turns what the helper recorded into numbers, after the clock has stopped, and back.

Arrays travel as base64 of their bytes inside JSON: a minute of 9 threads is about 200 kB.
"""

from __future__ import annotations

import base64
import os
import time
from array import array
from typing import Any

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture.gauges import Recorded
from jupyter_ioscope.capture.states import classify
from jupyter_ioscope.capture.threads import Key, Thread
from jupyter_ioscope.capture.tree import Tree
from jupyter_ioscope.capture.watch import Watch
from jupyter_ioscope.capture.without_calls import Samples, refine
from jupyter_ioscope.model.readings import STATES, Series

Ranges = tuple[tuple[int, int], ...]


def pack(values: array[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def unpack(kind: str, text: str) -> tuple[Any, ...]:
    """The numbers that `pack` wrote; ValueError if the text is damaged."""
    values = array(kind)
    values.frombytes(base64.b64decode(text))
    return tuple(values)


def pack_series(recorded: Recorded) -> dict[str, Any]:
    return {
        **recorded.info._asdict(),
        "time_ns": pack(recorded.time_ns),
        "values": pack(recorded.values),
    }


def unpack_series(packed: dict[str, Any]) -> Series:
    return Series(
        packed["name"],
        packed["unit"],
        packed["kind"],
        packed["scope"],
        unpack("q", packed["time_ns"]),
        unpack("d", packed["values"]),
    )


def pack_threads(watch: Watch, tree: Tree, start_ns: int, arch: str) -> list[dict[str, Any]]:
    """Every thread with its exact times and classified samples."""
    names = {number: key for key, number in watch.keys.numbers.items()}
    seen: dict[tuple[int, Ranges], int] = {}
    threads = list(watch.all())
    samples = []
    for thread in threads:
        gil = tree.gil(thread.pid)
        states = []
        for number in thread.sample_key:
            state = seen.get((number, gil))
            if state is None:
                state = seen[number, gil] = _state(names[number], gil, arch)
            states.append(state)
        samples.append(
            Samples(
                thread.pid, thread.sample_ns, states, thread.sample_faults, thread.sample_slices
            )
        )
    refine([item for item in samples if len(item.faults) == len(item.states) and item.states])
    return [
        _pack_thread(thread, item.states, start_ns)
        for thread, item in zip(threads, samples, strict=True)
    ]


def _state(key: Key, gil: Ranges, arch: str) -> int:
    char, call, wchan, link = (part.decode("utf-8", "replace") for part in key)
    return STATES.index(classify(char, call, wchan, link, gil, arch))


def _pack_thread(thread: Thread, states: list[int], start_ns: int) -> dict[str, Any]:
    last = procfs.parse_stat(thread.last_stat)
    first_ns, run_ns, queue_ns, faults = _growth(thread, start_ns)
    times, kinds = array("q"), array("b")
    for when, state in zip(thread.sample_ns, states, strict=True):
        if first_ns <= when <= thread.last_ns:
            times.append(when)
            kinds.append(state)
    return {
        "pid": thread.pid,
        "tid": thread.tid,
        "name": last.name,
        "first_ns": first_ns,
        "last_ns": thread.last_ns,
        "run_ns": run_ns,
        "run_queue_ns": queue_ns,
        "major_faults": faults,
        "exact": thread.exact,
        "sample_ns": pack(times),
        "states": pack(kinds),
    }


def _growth(thread: Thread, start_ns: int) -> tuple[int, int, int, int]:
    """(first reading, run time, run queue time, major faults) of a thread since then."""
    first, last = procfs.parse_stat(thread.first_stat), procfs.parse_stat(thread.last_stat)
    run_ns, queue_ns = _times(thread.last_counters) if thread.exact else (0, 0)
    born_ns = _born_ns(last.start_ticks)
    if start_ns < born_ns <= thread.first_ns:
        # Its counters began at zero with it: nothing before the first reading is lost.
        first_ns, faults = born_ns, last.major_faults
    else:
        first_ns, faults = thread.first_ns, last.major_faults - first.major_faults
        if thread.exact:
            run_before_ns, queue_before_ns = _times(thread.first_counters)
            run_ns, queue_ns = run_ns - run_before_ns, queue_ns - queue_before_ns
    # A wait for a core is counted when it ends: one that was under way at the first reading is
    # counted whole, so that the sum may exceed the wall time by a part of one such wait.
    wall_ns = thread.last_ns - first_ns
    run_ns = min(run_ns, wall_ns)
    return first_ns, run_ns, min(queue_ns, wall_ns - run_ns), faults


def _times(counters: bytes) -> tuple[int, int]:
    run, queue = counters.split()[:2]
    return int(run), int(queue)


def _born_ns(start_ticks: int) -> int:
    """When a thread was made, on CLOCK_MONOTONIC, rounded down to a clock tick (10 ms)."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return -1
    offset_ns = time.clock_gettime_ns(boot) - time.monotonic_ns()
    return int(start_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK") - offset_ns)
