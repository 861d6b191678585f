"""The way from worker to consumer costs more than the data."""

from __future__ import annotations

from statistics import fmean, median
from typing import NamedTuple

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.order_of_samples import order_part
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.unpacking import unpacking
from jupyter_ioscope.model.diagnosis import BLOCKED, Finding
from jupyter_ioscope.units import bytes_text, percent, seconds

# One tiny tensor costs about 0.4 ms of main-process CPU to hand over (a descriptor is passed for
# each), a pickled Python number about a microsecond: the geometric middle tells them apart.
TENSOR_COST_S = 20e-6
MANY_TENSORS = 16
# Copying 8 MB into and out of shared memory takes some milliseconds, more than the fixed costs.
LARGE_BATCH_BYTES = 8_000_000
# A batch of one small tensor costs about 1 ms; five times that has another reason.
FIXED_COST_S = 5e-3
# Rebuilding a tensor also waits for a thread of its worker, on a busy machine most of the time, and
# unpickling is work of this process alone: seen half as often it is the larger part of the work.
OBJECTS_PART = 0.5
LEAST_SEEN = 8  # samples of taking over that tell objects from tensors
# Python's name of the thread of a worker that passes descriptors on.
_GIVES_AWAY = "_serve"


_TOGGLES = {
    "workers_overhead": ("no_workers", "batched_fetch", "workers"),
    "ipc_many_tensors": ("packed_batches",),
}


class _Kind(NamedTuple):
    """What a batch is made of, in the words of a finding."""

    cause: str
    title: str
    advice: str
    keeps_workers: bool = False  # without them the loop would take longer


_OBJECTS = _Kind(
    "ipc_python_objects",
    "Batches come across as pickled Python objects",
    "Return tensors instead of lists, strings, numpy arrays, PIL pictures and objects of your own "
    "classes: tensors travel through shared memory, without pickling. What belongs together "
    "becomes one tensor with a row for each.",
)


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if batches came across for nothing. Of the time that bringing them
    across stood in line for a core, only what it stood behind this loop's own threads. What a
    sampler takes in between is no hand-over."""
    main = facts.waits.consumer
    if facts.alone or main is None or not facts.batches:
        return None
    carries = 1 - order_part(facts)[0]
    gain = _own_gain(facts, carries)
    turns = [turn.main for epoch in facts.replay.epochs for turn in epoch]
    cost_s = carries * fmean(turns) / 1e9
    objects = int(median([row.tensors for row in facts.fetches]))
    size = median([row.batch_bytes for row in facts.fetches])
    fetch_s = fmean([row.fetch_ns for row in facts.fetches]) / 1e9
    kind = _kind(objects, size, cost_s, fetch_s)
    if kind.cause in ("ipc_many_tensors", "bytes_inflated") and _unpickles(facts):
        kind = _OBJECTS
    elif kind is _OBJECTS and objects <= MANY_TENSORS and _rebuilds(facts):
        kind = _carried_dearly(facts)
    elif kind.cause == "workers_overhead":
        alone = _alone_share(facts, (1 - carries) * sum(turns))
        if alone > gain.share >= NOISE_SHARE:  # without workers their crowding goes as well
            gain = Gain(alone, min(gain.low, alone), max(gain.high, alone))
        elif alone < NOISE_SHARE:
            kind = _carried_dearly(facts)
    return finding(
        facts,
        gain,
        cause=kind.cause,
        resource="hand_over",
        title=kind.title,
        evidence=(
            f"Taking over a batch costs the main process {seconds(cost_s)}; "
            f"{percent(carries * main.fraction('hand_over'))} of the loop's time is hand-over. "
            f"Making it takes a worker {seconds(fetch_s)}.",
            _holds(kind, objects, size),
            _words.taken_line(facts),
        ),
        advice=kind.advice,
        toggles=tuple(
            name
            for name in _TOGGLES.get(kind.cause, ())
            if not (kind.keeps_workers and name == "no_workers")
        ),
    )


def _holds(kind: _Kind, objects: int, size: float) -> str:
    """What objects of the user's own hold is not counted."""
    if kind is _OBJECTS:
        return f"A batch holds {objects:,} objects or more, beside {bytes_text(size)} of numbers."
    return (
        f"A batch holds {objects:,} object{'' if objects == 1 else 's'}, {bytes_text(size)} in all."
    )


def _own_gain(facts: Facts, carries: float) -> Gain:
    """Gain without hand-over: its CPU time, and its waiting as far as that is the loop's own.
    `carries` is the part of the main process's time in `next()` that is hand-over.

    Hand-over off the CPU is mostly threads that wait for a core (`Facts.gain_queue`); with other
    programs on the cores they wait for those, and nothing done to the batches helps.
    """
    facts.gain_hand_over()  # raises where there are no workers
    turns = [turn for epoch in facts.replay.epochs for turn in epoch]
    whole_ns = sum(turn.main + turn.transit for turn in turns)
    cpu_ns = sum(row.wait_cpu_ns for row in facts.batches) + _carriers_ns(facts)
    off = max(0.0, 1 - cpu_ns / whole_ns) if whole_ns else 0.0
    return facts.gain(Without(hand_over=carries * (1 - off * (1 - facts.own_part_of_line))))


def _carriers_ns(facts: Facts) -> int:
    """CPU of the threads that bring batches across while the loop waits for them: feeders, torch's
    pinning thread, and the threads that give descriptors of shared memory away."""
    rows = facts.profile.threads
    return sum(
        row.run_ns
        for row in rows
        if row.role in ("feeder", "pin_memory") or (row.worker >= 0 and _GIVES_AWAY in row.name)
    )


def _alone_share(facts: Facts, order_ns: float) -> float:
    """Part of the loop that making the batches without workers would free; below 0 where it would
    take longer. Fetches then follow one another, and the sampler takes its `order_ns` as now.
    Start-up is not in it, nor what other programs held up: the rules about those say that."""
    rows = facts.fetches
    cpu_ns = sum(min(row.cpu_ns, row.fetch_ns) for row in rows)
    off_ns = sum(row.fetch_ns for row in rows) - cpu_ns
    sampled_ns = sum(map(facts.part_ns, ("run_queue", *BLOCKED)))
    queue = min(1.0, facts.part_ns("run_queue") / sampled_ns) if sampled_ns else 0.0
    step_ns = sum(row.step_ns for row in facts.batches)
    alone_ns = cpu_ns + off_ns * (1 - queue) + step_ns + order_ns
    now_ns = facts.loop.wall_ns - sum(facts.start_ups_ns)
    if queue:
        others = facts.gain_queue().share * (1 - facts.own_part_of_line)
        now_ns -= int(others * facts.loop.wall_ns)
    return (now_ns - alone_ns) / facts.loop.wall_ns


def _kind(objects: int, size: float, cost_s: float, fetch_s: float) -> _Kind:
    if objects > MANY_TENSORS and cost_s / objects >= TENSOR_COST_S:
        return _Kind(
            "ipc_many_tensors",
            "Batches come across as many small tensors",
            "Stack them in the collate function: one large tensor and an index (torch.cat, and "
            f"the lengths to split it again in the loop) instead of {objects:,} small ones.",
        )
    if size >= LARGE_BATCH_BYTES and objects <= MANY_TENSORS:
        return _Kind(
            "bytes_inflated",
            "Batches are large to bring across",
            "Send the smaller form (uint8 pixels, token ids of 16 bits) and widen it in the step.",
        )
    if objects <= MANY_TENSORS and (fetch_s < cost_s or cost_s < FIXED_COST_S):
        return _Kind(
            "workers_overhead",
            "Handing a batch over costs more than making it",
            "Use num_workers=0 if the data is in memory already, or larger batches: every batch "
            "costs the same to carry, however small it is.",
        )
    return _OBJECTS


def _unpickles(facts: Facts) -> bool:
    """Whether the objects of a batch are no tensors: taking over was seen in unpickling, mostly.
    Objects of the user's own are counted as one, whatever they hold."""
    seen = unpacking(facts.profile)
    return seen.samples >= LEAST_SEEN and seen.objects > OBJECTS_PART * seen.tensors


def _rebuilds(facts: Facts) -> bool:
    """Whether taking over was seen to be the rebuilding of tensors."""
    seen = unpacking(facts.profile)
    return seen.samples >= LEAST_SEEN and seen.objects <= OBJECTS_PART * seen.tensors


def _carried_dearly(facts: Facts) -> _Kind:
    """Workers pay, but what is carried at a time is small."""
    size = facts.loader.batch_size
    return _Kind(
        "workers_overhead",
        "Handing over each batch takes a good part of the time",
        "Make batches larger"
        + (f" (now {size} samples)" if size else "")
        + ": every batch costs the same to carry, however small it is. Keep the workers: without "
        "them the loop would take longer.",
        keeps_workers=True,
    )


RULE = Rule("hand_over", judge)
