"""Ranked likely causes of one slow wait, fetch or step, from what was recorded at that moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jupyter_ioscope.diagnosis.inside import IN_FETCH
from jupyter_ioscope.diagnosis.moments import Moments
from jupyter_ioscope.diagnosis.phases import Interval
from jupyter_ioscope.model.diagnosis import Likely
from jupyter_ioscope.model.records import Batch, Fetch
from jupyter_ioscope.units import bytes_text, nanoseconds, percent, significant

# A cause that fits less of the excess than this is not named.
LEAST = 0.15
MOST_CAUSES = 3
# What only happened at the same time, without a length of its own, counts at most this much.
AT_THE_SAME_TIME = 0.5
# How much more than usual is much more.
_MUCH = 3.0
_BLOCK_BYTES = 512  # of ru_inblock, see getrusage(2)
_LEAST_BYTES = 65_536
_LEAST_SILENCE_NS = 500_000_000
# Of a wait with workers only these say something: being idle is what waiting looks like.
_IN_WAIT = ("gil", "disk", "page_fault", "lock")
_BLOCKED = {
    "disk": "blocked by the disk",
    "page_fault": "blocked by page faults",
    "network": "waiting for the network",
    "poll": "waiting for the network",
    "sleep": "asleep",
    "pipe": "waiting for another process",
    "wait_child": "waiting for another process",
    "gil": "waiting for the GIL",
    "lock": "waiting for a lock",
}


class Slow(NamedTuple):
    """One slow stretch of a process. `cpu_ns` of it was on a core, `usual_cpu_ns` usually is."""

    phase: str
    pid: int
    span: Interval
    usual_ns: float
    cpu_ns: int
    usual_cpu_ns: float

    @property
    def time_ns(self) -> int:
        return max(1, self.span[1] - self.span[0])

    @property
    def excess_ns(self) -> float:
        return max(1.0, self.time_ns - self.usual_ns)


def causes_of_fetch(moments: Moments, fetch: Fetch, usual_ns: float) -> tuple[Likely, ...]:
    """Why a fetch took long."""
    return best([*_of_process(moments, slow_fetch(moments, fetch, usual_ns)),
                 *_of_items(moments, fetch, usual_ns)])  # fmt: skip


def slow_fetch(moments: Moments, fetch: Fetch, usual_ns: float) -> Slow:
    usual_cpu_ns = moments.usual("cpu", lambda row: row.cpu_ns)
    span = (fetch.start_ns, fetch.end_ns)
    return Slow("fetch", fetch.pid, span, usual_ns, fetch.cpu_ns, usual_cpu_ns)


def causes_of_step(moments: Moments, batch: Batch, usual_ns: float) -> tuple[Likely, ...]:
    """Why a step took long."""
    span = (batch.wait_end_ns, batch.step_end_ns)
    pid = moments.profile.pid
    slow = Slow("step", pid, span, usual_ns, batch.step_cpu_ns, moments.usual_step_cpu_ns)
    return best([*_of_process(moments, slow), *_of_files(moments, slow)])


def causes_of_wait(
    moments: Moments, batch: Batch, fetch: Fetch | None, usual_ns: float, first: bool
) -> tuple[Likely, ...]:
    """Why a wait took long. `first` says that its epoch had just begun."""
    span = (batch.wait_start_ns, batch.wait_end_ns)
    pid = moments.profile.pid
    slow = Slow("wait", pid, span, usual_ns, batch.wait_cpu_ns, moments.usual_wait_cpu_ns)
    if fetch is None:
        found = list(_of_process(moments, slow))
    elif fetch.worker < 0:
        inner = slow_fetch(moments, fetch, usual_ns)
        found = [*_of_process(moments, inner), *_of_items(moments, fetch, usual_ns)]
    else:
        found = [*_of_worker(moments, slow, fetch), *_of_process(moments, slow)]
    if first and (fetch is None or fetch.start_ns > batch.wait_start_ns):
        until = min(fetch.start_ns, batch.wait_end_ns) if fetch else batch.wait_end_ns
        part = (until - batch.wait_start_ns) / slow.excess_ns
        found.append(Likely("start", min(1.0, part), "the epoch had just begun: workers start"))
    return best(found)


def best(found: Iterable[Likely]) -> tuple[Likely, ...]:
    """The likeliest first, each cause once."""
    once: dict[str, Likely] = {}
    for row in found:
        row = row._replace(fraction=min(1.0, row.fraction))
        if row.fraction >= LEAST and row.fraction > once.get(row.cause, row).fraction - 1e-9:
            once[row.cause] = row
    ordered = sorted(once.values(), key=lambda row: (-row.fraction, row.cause))
    return tuple(ordered[:MOST_CAUSES])


def _of_process(moments: Moments, slow: Slow) -> Iterator[Likely]:
    """What one process's thread did in a slow stretch, and what the machine did to it."""
    silent_ns = moments.silent_ns(slow.span)
    if silent_ns > max(_LEAST_SILENCE_NS, 0.6 * slow.time_ns):
        text = f"nothing ran for {nanoseconds(silent_ns)}, the profiler neither"
        yield Likely("stopped", silent_ns / slow.excess_ns, text)
    paused_ns = moments.paused_ns(slow.pid, slow.span)
    if paused_ns:
        text = f"the garbage collector ran for {nanoseconds(paused_ns)}"
        yield Likely("gc", paused_ns / slow.excess_ns, text)
    states = moments.states(slow.pid, slow.span)
    yield from _blocked(states, slow)
    if slow.phase != "wait":
        more_ns = slow.cpu_ns - slow.usual_cpu_ns - paused_ns
        # what it computed is not said yet: any cause that says so is better
        text = f"it computed for {nanoseconds(slow.cpu_ns)}, usually {_ns(slow.usual_cpu_ns)}"
        yield Likely("cpu", 0.9 * more_ns / slow.excess_ns, text)
    yield from _of_cores(moments, slow, states)
    yield from _of_pressure(moments, slow)


def _blocked(states: dict[str, int], slow: Slow) -> Iterator[Likely]:
    seen = sum(states.values())
    for state, count in states.items():
        if state not in _BLOCKED or (slow.phase == "wait" and state not in _IN_WAIT):
            continue
        text = f"it was {_BLOCKED[state]} in {count} of {seen} samples"
        # one sample of a short stretch says little: as if one more had been seen doing else
        part = count / (seen + 1) if seen < 4 else count / seen
        yield Likely(IN_FETCH.get(state, state), part * slow.time_ns / slow.excess_ns, text)


def _of_cores(moments: Moments, slow: Slow, states: dict[str, int]) -> Iterator[Likely]:
    """Waiting for a core: runnable in samples without CPU time; others' use; the quota."""
    held_ns = min(moments.grown("cgroup_throttled_ns", slow.span), float(slow.time_ns))
    if held_ns > 0:
        text = f"the container's CPU quota held it back for {_ns(held_ns)}"
        yield Likely("throttled", held_ns / slow.excess_ns, text)
    seen = sum(states.values())
    if seen < 2:
        return
    queued_ns = states.get("running", 0) / seen * slow.time_ns - slow.cpu_ns
    part = (queued_ns - held_ns) / slow.excess_ns
    if part < LEAST:
        return
    yield Likely("run_queue", 0.9 * part, f"it waited for a core for about {_ns(queued_ns)}")
    others = others_cores(moments, slow.span)
    if others > 0.2 * moments.profile.machine.cpus_usable:
        text = f"other programs used {significant(others, 2)} cores, and it waited for one"
        yield Likely("cores_taken", part, text)


def others_cores(moments: Moments, span: Interval) -> float:
    """Cores that other programs used around a span; 0 where that was not measured."""
    if moments.series("tree_cpu_ns") is None:
        return 0.0
    return max(0.0, moments.rate("machine_busy_ns", span) - moments.rate("tree_cpu_ns", span))


def _of_pressure(moments: Moments, slow: Slow) -> Iterator[Likely]:
    """Threads anywhere on this machine stood still for the disk or for memory."""
    for name, what in (("io", "the disk"), ("memory", "memory")):
        key = f"psi_{name}_some_us"
        stalled = 1000 * moments.grown(key, slow.span) / slow.time_ns
        if stalled > 0.3 and stalled > _MUCH * 1000 * moments.mean_rate(key):
            part = percent(min(1.0, stalled), 0)
            text = f"something on this machine waited for {what} {part} of that time"
            yield Likely("pressure", 0.8 * AT_THE_SAME_TIME * min(1.0, stalled), text)


def _of_files(moments: Moments, slow: Slow) -> Iterator[Likely]:
    """Files that the step wrote meanwhile."""
    for key in ("tree_write_bytes", "machine_disk_write_bytes"):
        written = moments.grown(key, slow.span)
        if written > 1e6 and written > _MUCH * moments.mean_rate(key) * slow.time_ns:
            where = "were written" if key.startswith("tree") else "went to the machine's disks"
            text = f"{bytes_text(written)} {where} meanwhile"
            yield Likely("written", AT_THE_SAME_TIME, text)
            return


def _of_items(moments: Moments, fetch: Fetch, usual_ns: float) -> Iterator[Likely]:
    """What was different about this fetch's own items."""
    usual_bytes = moments.usual("bytes", lambda row: row.batch_bytes)
    if fetch.batch_bytes > 1.5 * usual_bytes > 0:
        times = fetch.batch_bytes / usual_bytes
        fits = usual_ns * (times - 1) / max(1.0, fetch.fetch_ns - usual_ns)
        text = f"the batch was {significant(times, 2)} times as large as usual"
        yield Likely("larger", 0.8 * min(1.0, fits), text)
    read = _BLOCK_BYTES * fetch.read_blocks
    usual_read = _BLOCK_BYTES * moments.usual("read", lambda row: row.read_blocks)
    if read > _LEAST_BYTES and read > _MUCH * usual_read:
        text = f"it read {bytes_text(read)} from the device, usually {bytes_text(usual_read)}"
        yield Likely("read", AT_THE_SAME_TIME, text)
    faults = moments.usual("faults", lambda row: row.major_faults)
    if fetch.major_faults > _MUCH * faults + 3:
        text = f"{fetch.major_faults} page faults went to the disk, usually {faults:.0f}"
        yield Likely("page_fault", AT_THE_SAME_TIME, text)


def _of_worker(moments: Moments, slow: Slow, fetch: Fetch) -> Iterator[Likely]:
    """A wait for a worker: its fetch was slow, it began late, or the batch was on its way."""
    start, end = slow.span
    usual_ns = moments.usual("fetch", lambda row: row.fetch_ns)
    if fetch.fetch_ns > 2 * usual_ns:
        part = max(0, min(fetch.end_ns, end) - max(fetch.start_ns, start)) / slow.excess_ns
        for row in causes_of_fetch(moments, fetch, usual_ns):
            yield row._replace(
                fraction=min(1.0, part) * row.fraction, text=f"in worker {fetch.worker}, {row.text}"
            )
    before = moments.before(fetch)
    if before is not None and before.fetch_ns > 2 * usual_ns:
        late_ns = max(0, min(before.end_ns, end) - max(before.start_ns, start))
        why = causes_of_fetch(moments, before, usual_ns)[:1]
        text = f"worker {fetch.worker} was late: its fetch before took {_ns(before.fetch_ns)}"
        text += "".join(f" ({row.text})" for row in why)
        yield Likely("other_fetch", late_ns / slow.excess_ns, text)
    way_ns = end - max(fetch.end_ns, start)
    if way_ns > 0:
        text = f"it was fetched, and on its way for {_ns(way_ns)}"
        yield Likely("hand_over", way_ns / slow.excess_ns, text)


def _ns(value: float) -> str:
    return nanoseconds(value)
