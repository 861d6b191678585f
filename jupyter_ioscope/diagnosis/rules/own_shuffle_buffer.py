"""A shuffle buffer of the user's own stream is filled before the first batch."""

from __future__ import annotations

from statistics import median

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, hf_facts
from jupyter_ioscope.diagnosis.memory_facts import tree_growth_bytes
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules.shuffle_buffer import FAR_LONGER, LEAST_NS, LEAST_SHARE
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, seconds, significant

# Batches that the first fetch took the time of: fewer are no buffer worth the name.
_LEAST_BATCHES = 8
# Of what so many samples hold: memory that grew by less keeps something else than samples.
_HELD = 0.4


def judge(facts: Facts) -> Finding | None:
    """What of the first fetches went into samples that are kept for later.

    It shows in three things together: the first fetch takes as long as hundreds of samples do,
    memory grows by what as many samples hold, and the code draws at random. Reading or building an
    index grows by less, and skipping to a position by nothing.
    """
    info = facts.loader
    if info.dataset_kind != "iterable" or hf_facts(facts) is not None or len(facts.batches) < 3:
        return None
    firsts, usual_ns = _firsts(facts)
    filled_ns = sum(first - usual_ns for first in firsts)
    if filled_ns < max(LEAST_NS, LEAST_SHARE * facts.loop.wall_ns) or not facts.work.random:
        return None
    first_ns = median(firsts)
    samples = first_ns / usual_ns * facts.samples_per_batch
    rows = [row for row in facts.fetches if row.samples > 0]
    each = sum(row.batch_bytes for row in rows) / max(1, sum(row.samples for row in rows))
    readers = max(1, info.num_workers)
    grown = _grown_bytes(facts)
    if each <= 0 or grown < _HELD * samples * each * readers:
        return None
    return finding(
        facts,
        Gain.of(min(1.0, filled_ns / facts.loop.wall_ns), 0.05),
        cause="shuffle_buffer_fill",
        resource="start_up",
        title="A shuffle buffer is filled before the first batch",
        evidence=(
            f"The first fetch took {seconds(first_ns / 1e9)}, later ones "
            f"{seconds(usual_ns / 1e9)} as a rule: as long as {significant(samples, 2)} samples.",
            f"Memory grew by {bytes_text(grown)}; so many samples hold "
            f"{bytes_text(samples * each * readers)}"
            + (f" in {readers} workers" if readers > 1 else "")
            + ", and the code draws at random.",
        ),
        advice="Use a smaller buffer, give batches out while it fills (draw from what is there "
        "already), and shuffle the order of shards or files, which costs nothing. Let it hold "
        "undecoded samples, and decode them when they are drawn.",
        where=facts.where(),
        refines=(*GENERAL, "no_workers_latency_bound", "network_latency", "disk_latency",
                 "blocked_unseen"),
    )  # fmt: skip


def _firsts(facts: Facts) -> tuple[list[int], float]:
    """First fetches of epochs that took far longer than the others, and a usual one."""
    first: dict[int, int] = {}
    later = []
    for row in facts.batches:
        made = facts.made.get(row.batch)
        took_ns = made.fetch_ns if made is not None else row.wait_ns
        if row.epoch in first:
            later.append(took_ns)
        else:
            first[row.epoch] = took_ns
    usual_ns = max(1.0, float(median(later))) if later else 1.0
    least_ns = max(FAR_LONGER, _LEAST_BATCHES) * usual_ns
    return [took for took in first.values() if later and took > least_ns], usual_ns


def _grown_bytes(facts: Facts) -> float:
    """What the processes that fetch grew by; 0 where that of workers is not known."""
    if not facts.alone:
        uses = [use for use in facts.profile.processes if use.worker >= 0]
        sizes = [(use.first_private_bytes, use.last_private_bytes) for use in uses]
        return float(sum(last - first for first, last in sizes if min(first, last) > 0))
    grown = tree_growth_bytes(facts.profile)
    if grown is None:
        raise NotMeasuredError("how much memory the loop took", "it was not read often enough")
    return grown


RULE = Rule("own_shuffle_buffer", judge)
