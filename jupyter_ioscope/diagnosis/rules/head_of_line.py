"""Finished batches wait behind a slow one, because batches are handed out in order."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.out_of_order import (
    effect_of_any_order,
    effect_of_prefetch,
    tail_ratio,
    waited_for_order,
)
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant

# Part of the loop in which a finished batch waits behind the one the consumer waits for. Any two
# workers finish a little out of step; in loaders with even samples it stayed below this.
LEAST_BEHIND = 0.1
# The slow ones must be a kind of their own: twice the usual fetch is spread that queues absorb.
LEAST_TAIL = 2.0
# Torch's default is 2 batches a worker; four times as many is still little memory.
MORE_PREFETCH = 4

_GENERAL = (
    "decode_cpu",
    "no_workers_latency_bound",
    "disk_latency",
    "disk_bandwidth",
    "network_latency",
    "page_fault_io",
    "blocked_unseen",
)


def judge(facts: Facts) -> Finding | None:
    """The recorded loop replayed in order against replayed with whatever batch is ready."""
    if facts.alone or facts.workers < 2 or not facts.loader.in_order:
        return None
    order = waited_for_order(facts.batches, facts.made)
    tail = tail_ratio(facts.fetches, _held_up(facts))
    behind = order.behind_ns / facts.loop.wall_ns
    if behind < LEAST_BEHIND or tail < LEAST_TAIL:
        return None
    effect = effect_of_any_order(facts.replay, facts.loader.dataset_kind == "iterable")
    # More than the consumer waited behind others cannot come from the order.
    freed = min(effect.freed, behind)
    scale = freed / effect.freed * facts.reach if effect.freed > 0 else 0.0
    return finding(
        facts,
        Gain.of(effect.freed * scale, effect.error * scale),
        cause="head_of_line_blocking",
        resource="none",
        title="Finished batches wait behind a slow one",
        evidence=(
            f"In {order.batches:,} of {len(facts.batches):,} waits a later batch was already "
            f"finished: {percent(order.behind_ns / max(1, order.waited_ns))} of the waiting.",
            f"The slowest twentieth of the fetches takes {significant(tail, 2)} times as long as "
            "the usual one or longer.",
            _words.where_line(facts),
        ),
        advice=_advice(facts, freed),
        toggles=("in_order", "prefetch"),
        where=facts.where(),
        refines=_GENERAL,
    )


def _held_up(facts: Facts) -> float | None:
    """Part of the fetches' time off the CPU that they stood in line for a core; None where states
    are not known, not even from inside."""
    rows = [row for row in facts.profile.threads if row.role == "worker"]
    if not any(row.exact or row.run_queue_ns for row in rows):
        return None
    off_ns = sum(max(0, row.fetch_ns - row.cpu_ns) for row in facts.fetches)
    return min(1.0, facts.part_ns("run_queue") / off_ns) if off_ns else 0.0


def _advice(facts: Facts, freed: float) -> str:
    ahead = MORE_PREFETCH * facts.loader.prefetch
    absorbed = effect_of_prefetch(facts.replay, MORE_PREFETCH)
    keep = (
        f"To keep the order, use prefetch_factor={ahead}: it absorbs about "
        f"{percent(min(1.0, absorbed / freed))} of this."
        if freed > 0 and absorbed > 0.3 * freed
        else "To keep the order, make the slow samples cheaper, or spread them evenly."
    )
    return (
        "Use in_order=False if the order of batches does not matter: the loop then takes whatever "
        f"is ready (torch 2.6 or newer). {keep}"
    )


RULE = Rule("head_of_line", judge)
