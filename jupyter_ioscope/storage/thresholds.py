"""From measured numbers to a verdict: each threshold with its source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jupyter_ioscope.model.storage import VERDICTS, Judged, Timing
from jupyter_ioscope.storage.measure import IOWAIT_GOOD
from jupyter_ioscope.units import bytes_text, percent, seconds

SCRIPT = "health script of the article 'AI file I/O stalls'"
BASELINE = "storage baseline of the article 'AI file I/O stalls'"
ETCD = "etcd's advice for disks (its FAQ): fsync within 10 ms"
# With fewer requests than this, the 99th percentile is the slowest one of them.
ENOUGH = 100


class Threshold(NamedTuple):
    """Healthy up to `good`, dangerous beyond `bad`, degraded between; None: never dangerous.

    `more_is_better` turns the direction round.
    """

    what: str
    good: float
    bad: float | None
    more_is_better: bool
    show: Callable[[float], str]
    source: str

    def verdict(self, value: float) -> str:
        """ "healthy", "degraded" or "dangerous"."""
        sign = -1 if self.more_is_better else 1
        if self.bad is not None and sign * value > sign * self.bad:
            return "dangerous"
        return "degraded" if sign * value > sign * self.good else "healthy"

    def judged(self, value: float, ends: tuple[float, float] = (-1.0, -1.0)) -> Judged:
        """The value with its verdict and its thresholds in words.

        `ends` is the range in which the value lies, negative where that is not known: a verdict is
        as bad only as all of the range.
        """
        word, other = ("at least", "under") if self.more_is_better else ("at most", "over")
        text = f"healthy {word} {self.show(self.good)}"
        text += f", dangerous {other} {self.show(self.bad)}" if self.bad is not None else ""
        verdict, doubt = self.verdict(value), ""
        if min(ends) >= 0 and verdict != "healthy":
            best = max(ends) if self.more_is_better else min(ends)
            surely = self.verdict(best)
            if surely != verdict:
                verdict = "unknown" if surely == "healthy" else surely
                doubt = f"{self.show(min(ends))} to {self.show(max(ends))} as far as this can tell"
        return Judged(self.what, self.show(value), verdict, text, self.source, doubt)


def _bandwidth(value: float) -> str:
    return f"{bytes_text(value)}/s"


READ = Threshold("sequential read", 450e6, 200e6, True, _bandwidth, SCRIPT)
OPEN = Threshold("opening a file", 100e-6, 1e-3, False, seconds, SCRIPT)
IOWAIT = Threshold("iowait before the check", IOWAIT_GOOD, 0.15, False, percent, SCRIPT)
RANDOM_P99 = Threshold("random 4 KiB read, 99th percentile", 12e-3, 15e-3, False, seconds, BASELINE)
RANDOM_P50 = RANDOM_P99._replace(what="random 4 KiB read, median")
FSYNC = Threshold("fsync of 4 KiB, median", 10e-3, None, False, seconds, ETCD)
_STREAMED_BYTES = 256 * 1024
_FROM_DEVICE = ("device", "memory")


def judge(
    timings: Iterable[Timing], iowait: float, lowest_iowait: float = -1.0
) -> tuple[Judged, ...]:
    """All that can be judged; a read that the page cache answered says nothing of the device.

    `lowest_iowait` is that of the quietest look before the check.
    """
    by_name = {row.name: row for row in timings}
    found = []
    read = by_name.get("sequential read")
    # A file too small for large requests shows the time of a request, not what a stream reaches.
    streamed = read is not None and read.request_bytes >= _STREAMED_BYTES
    if read is not None and streamed and read.answered_by in _FROM_DEVICE:
        found.append(READ.judged(read.bytes_per_s, read.bytes_per_s_range))
    random = by_name.get("random read")
    if random is not None and random.answered_by in _FROM_DEVICE:
        enough = random.requests >= ENOUGH
        found.append(
            RANDOM_P99.judged(random.p99_s, random.p99_range_s) if enough
            else RANDOM_P50.judged(random.p50_s, random.p50_range_s)
        )  # fmt: skip
    if (opened := by_name.get("open")) is not None:
        found.append(OPEN.judged(opened.p50_s, opened.p50_range_s))
    if (synced := by_name.get("fsync")) is not None:
        found.append(FSYNC.judged(synced.p50_s, synced.p50_range_s))
    if iowait >= 0:
        found.append(IOWAIT.judged(iowait, (lowest_iowait, iowait)))
    return tuple(found)


def overall(judged: tuple[Judged, ...]) -> str:
    """The worst of all that is known; "unknown" where no read could be judged and nothing is wrong
    otherwise."""
    order = VERDICTS[:3]
    known = [row for row in judged if row.verdict in order]
    worst = max((order.index(row.verdict) for row in known), default=0)
    read = any(row.what.startswith(("sequential", "random")) for row in known)
    return order[worst] if read or worst else "unknown"


def reasons(judged: tuple[Judged, ...]) -> tuple[str, ...]:
    """A sentence for each number that is not healthy, worst first, and for each in doubt."""
    bad = [row for row in judged if row.verdict in VERDICTS[1:3]]
    bad.sort(key=lambda row: -VERDICTS.index(row.verdict))
    return (
        *(f"{row.what}: {_value(row)}, which is {row.verdict} ({row.thresholds})" for row in bad),
        *(f"{row.what}: {_value(row)}: it cannot be told whether that is healthy "
          f"({row.thresholds}); check again, or thoroughly"
          for row in judged if row.verdict == "unknown"),
    )  # fmt: skip


def _value(row: Judged) -> str:
    return f"{row.value} ({row.doubt})" if row.doubt else row.value
