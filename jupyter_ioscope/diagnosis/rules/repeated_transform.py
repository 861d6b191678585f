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
_DECODING = ("image_decode", "image_open", "image_resize", "image_other", "audio_decode", "unpack")
_MOSTLY = 0.5
_EACH_EPOCH = 0.9  # opens of a file an epoch
_ENOUGH_PAIRS = 6  # so many equal checksums are no chance, whatever the code may call
# ... and so many of single samples, where the code calls something random: an augmentation that
# acts on one sample in five stays hidden in 0.8 ** 16, three of a hundred runs.
_ENOUGH_SAMPLES = 16
_OF_MEMORY = 0.5  # what a cache may fill of it: the rest is for the loop, and for the page cache
# Below so much work an item there is nothing worth keeping.
_LEAST_NS = 200_000


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if items were made in the first epoch and kept."""
    if not facts.batches or facts.loader.dataset_kind != "map":
        return None
    epochs = _epochs(facts)
    if len(epochs) < _LEAST_EPOCHS:
        return None
    proof = _proof(facts, epochs)
    if not proof:
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
            f"{len(epochs)} epochs {proof}, and each took about {seconds(costs[-1] / 1e9)} of CPU: "
            f"{percent(again)} of it made nothing new.",
            seen_line(facts, "making items", *_KINDS),
            place_line(facts, *_KINDS),
        ),
        advice=_advice(facts, samples),
        toggles=("sample_cache", "decode_once")
        if facts.work.fraction(*_DECODING)[0]
        else ("sample_cache",),
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


def _proof(facts: Facts, epochs: list[list[Fetch]]) -> str:
    """Why later epochs are known to make what the first one made; empty where they are not.

    In a fixed order equal checksums of batches show it. Shuffled, the batches differ in any case:
    then it is known where single samples were compared and none differed, or where the same files
    are decoded each time and nothing random is called anywhere.
    """
    compared, alike = _samples(facts)
    if alike < compared:  # of one index, not twice the same
        return ""
    if alike >= (_ENOUGH_PAIRS if not facts.work.random else _ENOUGH_SAMPLES):
        return f"delivered the same samples ({alike} pairs of checksums are equal)"
    pairs = _compared(epochs)
    equal = sum(a == b for a, b in pairs)
    if pairs and equal == len(pairs) and (len(pairs) >= _ENOUGH_PAIRS or not facts.work.random):
        return f"delivered the same batches ({len(pairs)} pairs of checksums are equal)"
    if equal or facts.work.random:
        return ""
    decoding, _ = facts.work.fraction(*_DECODING)
    storage = facts.storage
    opens = sum(use.opens for use in storage.opens)
    again = opens / storage.distinct_files if opens else 0.0
    if decoding < _MOSTLY or again < _EACH_EPOCH * len(epochs):
        return ""
    return f"decoded the same {storage.distinct_files:,} files, with nothing random in the code"


def _samples(facts: Facts) -> tuple[int, int]:
    """Samples of the main loader that were made twice and compared, and how many were alike."""
    rows = [row for row in facts.profile.samples_again if facts.is_main(row.loader)]
    return sum(row.compared for row in rows), sum(row.alike for row in rows)


def _compared(epochs: list[list[Fetch]]) -> list[tuple[int, int]]:
    """Checksums of equal tasks: (of the first epoch, of a later one)."""
    known = [{row.task: row.digest for row in rows if row.digest} for rows in epochs]
    return [
        (digest, other[task])
        for other in known[1:]
        for task, digest in known[0].items()
        if task in other
    ]


def _advice(facts: Facts, samples: int) -> str:
    size = facts.storage.used_bytes_per_sample * samples
    machine = facts.profile.machine
    memory = min(filter(None, (machine.memory_bytes, machine.memory_limit_bytes)), default=0)
    fits = not memory or size < _OF_MEMORY * memory
    return (
        "Make every item once and keep it: an array file written in the first epoch"
        + (
            f", or a cache in memory ({bytes_text(size)} for all of them)"
            if fits
            else f" ({bytes_text(size)} for all of them: too much for this machine's memory)"
        )
        + ". Random augmentation, where there is any, stays after the cache."
    )


RULE = Rule("repeated_transform", judge)
