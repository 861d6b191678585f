"""Which workers made the same batches, from the checksums that fetches of streams carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jupyter_ioscope.model.records import Fetch

# So many batches must be equal, and so many of them differ from each other: a stream of zeros, or
# one that repeats a few samples, looks alike everywhere without being handed out twice.
LEAST_EQUAL = 4
LEAST_DISTINCT = 4
# Of the batches that two workers can be compared in. The last of an epoch may be shorter.
LEAST_FRACTION = 0.9

# The high bits of a digest cover labels, ids and texts only.
_LABELS_SHIFT = 32


class Copies(NamedTuple):
    """Workers that made the same batches. `compared` batches were equal, one by one;
    `labels_only` says that only labels were (every worker augments in its own way)."""

    workers: tuple[int, ...]
    compared: int
    labels_only: bool


def copies_in(fetches: Iterable[Fetch]) -> list[Copies]:
    """Groups of workers with equal batches, largest first."""
    sequences = _sequences(fetches)
    groups: list[list[int]] = []
    notes: list[tuple[int, bool]] = []
    for worker in sorted(sequences):
        for at, group in enumerate(groups):
            found = _equal(sequences[group[0]], sequences[worker])
            if found is not None:
                group.append(worker)
                notes[at] = (min(notes[at][0] or found[0], found[0]), notes[at][1] or found[1])
                break
        else:
            groups.append([worker])
            notes.append((0, False))
    copies = [
        Copies(tuple(group), *note)
        for group, note in zip(groups, notes, strict=True)
        if len(group) > 1
    ]
    return sorted(copies, key=lambda found: -len(found.workers))


def wasted_fraction(copies: Sequence[Copies], fetches: Iterable[Fetch]) -> float:
    """Part of the samples that were made although another worker made them as well."""
    samples: dict[int, int] = {}
    for row in fetches:
        samples[row.worker] = samples.get(row.worker, 0) + max(0, row.samples)
    whole = sum(samples.values())
    spare = sum(
        sum(sorted(samples.get(worker, 0) for worker in found.workers)[:-1]) for found in copies
    )
    return spare / whole if whole else 0.0


def _sequences(fetches: Iterable[Fetch]) -> Mapping[int, Mapping[tuple[int, int], int]]:
    """Worker -> (epoch, how manieth fetch of it) -> digest."""
    found: dict[int, dict[tuple[int, int], int]] = {}
    seen: dict[tuple[int, int], int] = {}
    for row in sorted(fetches, key=lambda fetch: fetch.start_ns):
        if row.worker < 0:
            continue
        number = seen.get((row.worker, row.epoch), 0)
        seen[row.worker, row.epoch] = number + 1
        if row.digest:
            found.setdefault(row.worker, {})[row.epoch, number] = row.digest
    return found


def _equal(
    one: Mapping[tuple[int, int], int], other: Mapping[tuple[int, int], int]
) -> tuple[int, bool] | None:
    """(batches that are equal, whether in their labels only), or None."""
    both = [(one[key], other[key]) for key in one if key in other]
    for shift in (0, _LABELS_SHIFT):
        pairs = [(a >> shift, b >> shift) for a, b in both if a >> shift and b >> shift]
        alike = [a for a, b in pairs if a == b]
        enough = len(alike) >= max(LEAST_EQUAL, LEAST_FRACTION * len(pairs))
        if enough and len(set(alike)) >= LEAST_DISTINCT:
            return len(alike), bool(shift)
    return None
