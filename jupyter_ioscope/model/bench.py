"""What a bench measured on the user's own file or sample: speeds, memory, and what came out wrong.

All `*_s` are seconds, all `*_bytes` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# How an arm came out against what it is compared with; "reference" is that one itself.
BENCH_VERDICTS = (
    "reference", "faster", "slower", "same", "undecided", "failed", "not installed", "not tried",
)  # fmt: skip
# "same": alike to the last bit, in type and in order; "differs": `differences` says how.
CORRECT = ("reference", "same", "differs", "fails", "not checked")


@dataclass(frozen=True)
class BenchArm:
    """One format, parser, protocol or engine. Numbers are NaN or 0 where nothing was measured.

    `ratio` is the speed as a multiple of the speed of `against` (an arm of the same group), with
    its interval; each interval holds with the result's `confidence`. `memory_bytes` is what the
    process grew by at its peak, files mapped into it included; `files_bytes` is what of that lay in
    mapped files at the end, which the system can take back at any time.
    """

    name: str
    group: str
    against: str
    verdict: str
    ratio: float
    ratio_low: float
    ratio_high: float
    seconds_per_item: float
    bytes_per_s: float
    cpu_s_per_item: float
    memory_bytes: int
    files_bytes: int
    size_bytes: int
    trials: int
    correct: str
    differences: tuple[str, ...]
    note: str


class BenchTable(NamedTuple):
    """A further table; its first row is the head."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchResult:
    """One bench on one target. `item` is what `seconds_per_item` counts ("line", "request")."""

    name: str
    title: str
    target: str
    item: str
    headline: str
    arms: tuple[BenchArm, ...]
    tables: tuple[BenchTable, ...]
    notes: tuple[str, ...]
    code: str
    confidence: float
    isolation: str
    isolation_text: str
    seconds: float

    def arm(self, name: str, group: str = "") -> BenchArm | None:
        """The arm of that name; of the first group that has it, where no group is given."""
        return next(
            (row for row in self.arms if row.name == name and group in ("", row.group)), None
        )

    def __str__(self) -> str:
        return self.headline
