"""The same items are made anew in every epoch, with the same result."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    gain_of_work,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.records import Fetch
from jupyter_ioscope.units import bytes_text, percent, seconds

_LEAST_EPOCHS = 3
_ALIKE = 0.5  # later epochs cost at least this part of the first: nothing was kept
_KINDS = (
    "image_decode",
    "image_resize",
    "image_other",
    "audio_decode",
    "unpack",
    "library",
    "user",
    "tensor_build",
    "copy",
    "hash",
)
# Below so much work an item there is nothing worth keeping.
_LEAST_NS = 200_000


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if items were made in the first epoch and kept."""
    if not facts.batches or facts.loader.dataset_kind != "map":
        return None
    epochs = _epochs(facts)
    if len(epochs) < _LEAST_EPOCHS or facts.work.random or not _same_batches(epochs):
        return None
    costs = [sum(row.cpu_ns for row in rows) for rows in epochs]
    samples = sum(row.samples for row in epochs[0])
    if min(costs) < _ALIKE * costs[0] or not samples or costs[0] / samples < _LEAST_NS:
        return None
    again = 1 - costs[0] / sum(costs)
    return finding(
        facts,
        gain_of_work(facts, *_KINDS, saved=again),
        cause="repeated_deterministic_transform",
        resource=resource(facts),
        title="The same items are made anew in every epoch",
        evidence=(
            f"{len(epochs)} epochs delivered the same batches (equal checksums), and each took "
            f"about {seconds(costs[-1] / 1e9)} of CPU: {percent(again)} of it made nothing new.",
            seen_line(facts, "making items", *_KINDS),
            place_line(facts, *_KINDS),
        ),
        advice="Make every item once and keep it: an array file written in the first epoch, or a "
        f"cache in memory ({_size(facts, samples)} for all of them). Random augmentation, where "
        "there is any, stays after the cache.",
        where=facts.work.where(*_KINDS),
        refines=CPU_CAUSES,
    )


def _epochs(facts: Facts) -> list[list[Fetch]]:
    """Fetches of every epoch that was as long as the first one, by task."""
    rows: dict[int, list[Fetch]] = {}
    for row in facts.fetches:
        rows.setdefault(row.epoch, []).append(row)
    whole = max(len(fetches) for fetches in rows.values())
    return [
        sorted(fetches, key=lambda row: row.task)
        for _, fetches in sorted(rows.items())
        if len(fetches) == whole
    ]


def _same_batches(epochs: list[list[Fetch]]) -> bool:
    """Whether the checksums that epochs share are there, and equal."""
    known = [{row.task: row.digest for row in rows if row.digest} for rows in epochs]
    first = known[0]
    shared = [{task for task in first if task in other} for other in known[1:]]
    return all(shared) and all(
        first[task] == other[task]
        for other, tasks in zip(known[1:], shared, strict=True)
        for task in tasks
    )


def _size(facts: Facts, samples: int) -> str:
    return bytes_text(facts.storage.used_bytes_per_sample * samples)


RULE = Rule("repeated_transform", judge)
