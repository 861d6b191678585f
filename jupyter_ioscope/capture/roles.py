"""Whose thread is whose: consumer, worker, feeder, pin_memory, other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jupyter_ioscope.capture.harvest import unpack
from jupyter_ioscope.model.readings import STATES, ThreadReadings

_NETWORK = STATES.index("network")
_POLL = STATES.index("poll")
OURS = "ioscope"  # threads of the profiler inside the processes call themselves so


def readings(
    packed: Iterable[Mapping[str, Any]],
    pid: int,
    consumer_tid: int,
    workers: Mapping[int, int],
    names: Mapping[tuple[int, int], str],
) -> tuple[ThreadReadings, ...]:
    """The threads that the helper sent, with roles and worker ids.

    Args:
        packed: as `harvest.pack_threads` makes them.
        pid: the watched process.
        consumer_tid: thread id of its loop.
        workers: process id -> worker id.
        names: (pid, tid) -> Python's name of the thread, where the stacks know it.
    """
    found = [_reading(item, pid, consumer_tid, workers, names) for item in packed]
    # Before Python 3.14 the operating system does not know the names that Python gives.
    found = [one for one in found if one.role != "other" or not one.name.startswith(OURS)]
    for worker_pid in workers:
        _name_a_feeder(found, worker_pid, names)
    return tuple(sorted(found, key=lambda thread: (thread.pid != pid, thread.pid, thread.tid)))


def _reading(
    item: Mapping[str, Any],
    pid: int,
    consumer_tid: int,
    workers: Mapping[int, int],
    names: Mapping[tuple[int, int], str],
) -> ThreadReadings:
    key = (item["pid"], item["tid"])
    name = names.get(key) or item["name"]
    if key == (pid, consumer_tid):
        role = "consumer"
    elif key[0] in workers and key[0] == key[1]:
        role = "worker"
    elif key[0] in workers and name.startswith("QueueFeeder"):
        role = "feeder"
    # torch names the thread so for the operating system, Python's own name is a number.
    elif item["name"].startswith("pt_data_pin") or "pin_memory" in name:
        role = "pin_memory"
    else:
        role = "other"
    return ThreadReadings(
        pid=key[0],
        tid=key[1],
        name=name,
        role=role,
        worker=workers.get(key[0], -1),
        first_ns=item["first_ns"],
        last_ns=item["last_ns"],
        run_ns=item["run_ns"],
        run_queue_ns=item["run_queue_ns"],
        major_faults=item["major_faults"],
        exact=item["exact"],
        sample_ns=unpack("q", item["sample_ns"]),
        states=unpack("b", item["states"]),
    )


def _name_a_feeder(
    found: list[ThreadReadings], pid: int, names: Mapping[tuple[int, int], str]
) -> None:
    """Without Python's names: the feeder is the worker's oldest thread that serves no socket.

    A worker makes it for its first batch; the thread that hands out shared memory comes later.
    """
    mine = [index for index, thread in enumerate(found) if thread.pid == pid]
    if any(found[index].role == "feeder" for index in mine):
        return
    candidates = [
        index
        for index in mine
        if found[index].role == "other"
        and (pid, found[index].tid) not in names
        and not _serves_socket(found[index].states)
    ]
    if candidates:
        oldest = min(candidates, key=lambda index: found[index].tid)
        values = {**found[oldest].__dict__, "role": "feeder"}
        found[oldest] = ThreadReadings(**values)


def _serves_socket(states: Sequence[int]) -> bool:
    return 2 * sum(state in (_NETWORK, _POLL) for state in states) > len(states) > 0
