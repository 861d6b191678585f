"""The way from worker to consumer costs more than the data."""

from __future__ import annotations

from statistics import mean, median

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, seconds

# One tiny tensor costs about 0.4 ms of main-process CPU to hand over (a descriptor is passed for
# each), a pickled Python number about a microsecond: the geometric middle tells them apart.
TENSOR_COST_S = 20e-6
MANY_TENSORS = 16
# Copying 8 MB into and out of shared memory takes some milliseconds, more than the fixed costs.
LARGE_BATCH_BYTES = 8_000_000
# A batch of one small tensor costs about 1 ms; five times that has another reason.
FIXED_COST_S = 5e-3


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if batches came across for nothing."""
    main = facts.waits.consumer
    if facts.alone or main is None or not facts.batches:
        return None
    gain = facts.gain_hand_over()
    cost_s = mean([turn.main for epoch in facts.replay.epochs for turn in epoch]) / 1e9
    objects = int(median([row.tensors for row in facts.fetches]))
    size = median([row.batch_bytes for row in facts.fetches])
    fetch_s = mean([row.fetch_ns for row in facts.fetches]) / 1e9
    cause, title, advice = _kind(objects, size, cost_s, fetch_s)
    return finding(
        facts,
        gain,
        cause=cause,
        resource="hand_over",
        title=title,
        evidence=(
            f"Taking over a batch costs the main process {seconds(cost_s)}; "
            f"{percent(main.fraction('hand_over'))} of the loop's time is hand-over.",
            f"A batch holds {objects:,} objects, {bytes_text(size)} in all.",
        ),
        advice=advice,
        toggles=("workers",) if cause == "workers_overhead" else (),
    )


def _kind(objects: int, size: float, cost_s: float, fetch_s: float) -> tuple[str, str, str]:
    """(cause, title, advice) by what a batch is made of."""
    if objects > MANY_TENSORS and cost_s / objects >= TENSOR_COST_S:
        return (
            "ipc_many_tensors",
            "Batches come across as many small tensors",
            "Stack them in the collate function: one large tensor and an index instead of "
            f"{objects:,} small ones.",
        )
    if size >= LARGE_BATCH_BYTES and objects <= MANY_TENSORS:
        return (
            "bytes_inflated",
            "Batches are large to bring across",
            "Send the smaller form (uint8 pixels, token ids of 16 bits) and widen it in the step.",
        )
    if objects <= MANY_TENSORS and (fetch_s < cost_s or cost_s < FIXED_COST_S):
        return (
            "workers_overhead",
            "Handing a batch over costs more than making it",
            "Use num_workers=0 if the data is in memory already, or larger batches: every batch "
            "costs the same to carry, however small it is.",
        )
    return (
        "ipc_python_objects",
        "Batches come across as pickled Python objects",
        "Return tensors or arrays instead of lists, dicts and strings: they travel through shared "
        "memory, without pickling.",
    )


RULE = Rule("hand_over", judge)
