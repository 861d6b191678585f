"""Where the consumer's wall time went, from the first `iter()` to the end of the last step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jupyter_ioscope.diagnosis.inside import Span, seen_in, split_inside
from jupyter_ioscope.diagnosis.loop import Loop
from jupyter_ioscope.diagnosis.parts import Parts, thread_waits
from jupyter_ioscope.diagnosis.phases import Lookup, total_ns, union
from jupyter_ioscope.diagnosis.spread import shares
from jupyter_ioscope.model.diagnosis import ThreadWaits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.model.records import Batch, Fetch


def consumer_waits(profile: Profile, loop: Loop, made: Mapping[int, Fetch]) -> ThreadWaits:
    """`step` and the length of every wait are exact. A wait for a worker is idleness until the
    batch's fetch has ended, then hand-over; a fetch that the consumer does itself is split like a
    worker's; starting an epoch and stopping its workers is start-up."""
    alone, served = _by_kind(profile, made)
    inner = Parts()
    reading = consumer_reading(profile)
    first = _first_of_epochs(profile)
    _own_fetches(profile, alone, made, reading, first, inner)
    _served(served, made, first, inner)
    _queue_and_gil(profile, served, reading, inner)
    waits_ns = total_ns(union(loop.waits))
    if inner.sum_ns() > waits_ns > 0:  # loops inside one another wait at the same time
        inner.scale(waits_ns / inner.sum_ns())
    edges_ns = loop.blocked_ns - waits_ns
    inner.add("start_up", edges_ns)
    inner.add("step", loop.step_ns)
    return thread_waits("consumer", -1, profile.pid, loop.wall_ns, inner)


def consumer_reading(profile: Profile) -> ThreadReadings | None:
    """The readings of the thread that iterated the loader."""
    own = [row for row in profile.threads if row.role == "consumer"]
    same = [row for row in own if row.tid == profile.consumer_tid]
    found = same or own
    return found[0] if found else None


def fetched_by_consumer(profile: Profile, made: Mapping[int, Fetch], batch: Batch) -> bool:
    """Whether the consumer got the items of this batch itself."""
    if batch.batch in made:
        return made[batch.batch].worker < 0
    if batch.worker >= 0:
        return False
    return all(row.num_workers == 0 for row in profile.loaders if row.loader == batch.loader)


def _by_kind(profile: Profile, made: Mapping[int, Fetch]) -> tuple[list[Batch], list[Batch]]:
    alone = [row for row in profile.batches if fetched_by_consumer(profile, made, row)]
    chosen = {row.batch for row in alone}
    return alone, [row for row in profile.batches if row.batch not in chosen]


def _first_of_epochs(profile: Profile) -> set[int]:
    """Numbers of the batches that were the first of their epoch."""
    first: dict[int, Batch] = {}
    for row in profile.batches:
        if row.epoch not in first or row.wait_start_ns < first[row.epoch].wait_start_ns:
            first[row.epoch] = row
    return {row.batch for row in first.values()}


def _own_fetches(
    profile: Profile,
    batches: Sequence[Batch],
    made: Mapping[int, Fetch],
    reading: ThreadReadings | None,
    first: set[int],
    parts: Parts,
) -> None:
    """Batches that the consumer fetched itself. A wait without a fetch record counts as a fetch."""
    spans = []
    for row in batches:
        fetch = made.get(row.batch)
        if fetch is None:
            spans.append(Span(row.wait_start_ns, row.wait_end_ns, row.wait_cpu_ns))
            continue
        spans.append(Span(fetch.start_ns, fetch.end_ns, fetch.cpu_ns))
        before_ns = max(0, fetch.start_ns - row.wait_start_ns) if row.batch in first else 0
        cpu_ns = max(0, row.wait_cpu_ns - fetch.cpu_ns)
        outside_ns = max(0, row.wait_ns - fetch.fetch_ns - before_ns)
        parts.add("start_up", before_ns)
        cpu_ns = min(outside_ns, max(0, cpu_ns - before_ns))
        parts.add("cpu", cpu_ns)
        parts.add("rest", outside_ns - cpu_ns)
    if not spans:
        return
    spans.sort(key=lambda span: span.start_ns)
    seen = None
    if reading is not None:
        helpers = [row for row in profile.threads if row.role == "other" and row.pid == profile.pid]
        window = (reading.first_ns, reading.last_ns)
        seen = seen_in(reading, spans, window, helpers)
    fetch_ns = sum(span.wall_ns for span in spans)
    cpu_ns = sum(min(span.cpu_ns, span.wall_ns) for span in spans)
    for name, (time_ns, error_ns) in split_inside(fetch_ns, cpu_ns, seen).items():
        parts.add(name, time_ns, error_ns)


def _served(
    batches: Sequence[Batch], made: Mapping[int, Fetch], first: set[int], parts: Parts
) -> None:
    """Batches that a worker fetched."""
    for row in batches:
        fetch = made.get(row.batch)
        start_ns = hand_ns = 0
        if fetch is not None:
            until = min(max(fetch.start_ns, row.wait_start_ns), row.wait_end_ns)
            start_ns = until - row.wait_start_ns if row.batch in first else 0
            hand_ns = row.wait_end_ns - min(max(fetch.end_ns, row.wait_start_ns), row.wait_end_ns)
        # CPU inside next() unpickles: it is hand-over even where the record says "not yet fetched"
        hand_ns = min(max(hand_ns, row.wait_cpu_ns), row.wait_ns - start_ns)
        parts.add("start_up", start_ns)
        parts.add("hand_over", hand_ns)
        parts.add("idle", row.wait_ns - start_ns - hand_ns)


def _queue_and_gil(
    profile: Profile, batches: Sequence[Batch], reading: ThreadReadings | None, parts: Parts
) -> None:
    """Of the hand-over, what was waiting for a core (exact total, divided as CPU is) and what was
    waiting for the GIL (sampled)."""
    if reading is None or not batches:
        return
    spans = sorted(Span(row.wait_start_ns, row.wait_end_ns, row.wait_cpu_ns) for row in batches)
    cpu_ns = sum(span.cpu_ns for span in spans)
    if reading.run_ns:
        queue_ns = reading.run_queue_ns * min(cpu_ns, reading.run_ns) // reading.run_ns
        hand_ns = next((p.time_ns for p in parts.ordered() if p.name == "hand_over"), 0)
        parts.add("run_queue", parts.take("hand_over", min(queue_ns, max(0, hand_ns - cpu_ns))))
    lookup = Lookup([(span.start_ns, span.end_ns) for span in spans])
    gil = STATES.index("gil")
    clusters: dict[int, dict[str, int]] = {}
    for time_ns, state in zip(reading.sample_ns, reading.states, strict=False):
        at = lookup.index(time_ns)
        if at >= 0:
            group = clusters.setdefault(at, {})
            kind = "gil" if state == gil else "else"
            group[kind] = group.get(kind, 0) + 1
    fraction, error = shares(clusters.values()).get("gil", (0.0, 0.0))
    wait_ns = sum(span.wall_ns for span in spans)
    if fraction:
        parts.add("gil", parts.take("hand_over", int(fraction * wait_ns)), error * wait_ns)
