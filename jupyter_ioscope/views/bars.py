"""Bars: where each thread's time went, and what each resource alone would allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jupyter_ioscope.model.diagnosis import PARTS, Ceiling, ThreadWaits, Throughput, Waits
from jupyter_ioscope.units import NBSP, nanoseconds, percent, rate, significant
from jupyter_ioscope.views.flame import WORKERS_DRAWN
from jupyter_ioscope.views.shapes import IBar, ICeiling, ILegend, INow, IPart
from jupyter_ioscope.views.words import NO_BATCH, PART_LABELS, clean

# Ceilings far above the measured throughput would squeeze those that matter: the axis ends here,
# in multiples of the measured throughput and of the lowest ceiling.
_AXIS_MULTIPLE = 8.0
_NOT_TOLD_APART = 2.0  # at most this many times the lowest ceiling, with intervals that overlap
_BUSY = 0.01  # threads that only hand batches on are shown from this part of their time on
_SEEN = 0.0005  # of the wall time: less is no pixel and reads 0.0 %
# Doubts below this share are not printed inside a bar (they are exact counters or rounding).
_DOUBT_SHOWN = 0.005


def wait_bars(waits: Waits, workers_drawn: int = WORKERS_DRAWN) -> list[IBar]:
    """One bar for the consumer and one a worker; beyond `workers_drawn` the rest in one bar."""
    bars = [_bar("consumer", waits.consumer)] if waits.consumer else []
    workers = waits.workers
    drawn = drawn_workers(workers, workers_drawn)
    bars.extend(_bar(worker_name(worker), worker) for worker in workers[:drawn])
    if rest := workers[drawn:]:
        bars.append(_bar(f"{len(rest)} more", merged(rest)))
    bars.extend(_bar(name, thread) for name, thread in handing_on(waits))
    return bars


def drawn_workers(workers: Sequence[ThreadWaits], limit: int = WORKERS_DRAWN) -> int:
    """How many workers have a bar of their own: one alone is never called the rest."""
    return len(workers) if len(workers) <= limit + 1 else limit


# A row's name in all views.
FEEDERS = "feeder threads"


def handing_on(waits: Waits) -> list[tuple[str, ThreadWaits]]:
    """The feeder threads of all workers as one row, and the thread that pins memory, each where it
    was busy enough to be seen: mostly they wait."""
    found = []
    for who, name in (("feeder", FEEDERS), ("pin_memory", "pin memory")):
        rows = [row for row in waits.others if row.who == who]
        if rows and (row := merged(rows)).wall_ns:
            quiet = row.fraction("idle") + row.fraction("rest")
            if quiet < 1 - _BUSY:
                found.append((name, row))
    return found


def worker_name(worker: ThreadWaits) -> str:
    """`worker 3`, or the process where its number is not known."""
    return f"worker {worker.worker}" if worker.worker >= 0 else f"process {worker.pid}"


def merged(threads: Sequence[ThreadWaits]) -> ThreadWaits:
    """The time of several threads together; errors of independent samples add in quadrature."""
    times: dict[str, int] = {}
    squares: dict[str, float] = {}
    for thread in threads:
        for part in thread.parts:
            times[part.name] = times.get(part.name, 0) + part.time_ns
            squares[part.name] = squares.get(part.name, 0.0) + float(part.error_ns) ** 2
    part_type = type(threads[0].parts[0]) if threads[0].parts else None
    parts = tuple(
        part_type(name, time_ns, round(math.sqrt(squares[name])))
        for name, time_ns in times.items()
        if part_type
    )
    return ThreadWaits("worker", -1, -1, sum(thread.wall_ns for thread in threads), parts)


def _bar(who: str, thread: ThreadWaits) -> IBar:
    order = {name: index for index, name in enumerate(PARTS)}
    shown = sorted(
        (part for part in thread.parts if part.time_ns > _SEEN * thread.wall_ns),
        key=lambda part: order.get(part.name, len(order)),
    )
    # The parts sum to the wall time within rounding; where they overshoot, the bar still ends at 1.
    whole = max(1, thread.wall_ns, sum(part.time_ns for part in shown))
    parts = [
        IPart(
            name=part.name if part.name in order else "rest",
            label=part_label(part.name, thread.who),
            fraction=round(part.time_ns / whole, 4),
            text=share_text(part.time_ns / whole, part.error_ns / whole),
        )
        for part in shown
    ]
    return IBar(who=who, title=_title(who, thread, parts), parts=parts)


def part_label(name: str, who: str = "") -> str:
    """The word for a part of time of a thread (`ThreadWaits.who`)."""
    if name == "idle" and who == "consumer":
        return NO_BATCH
    return PART_LABELS.get(name) or clean(name, 40)


def share_text(fraction: float, error: float) -> str:
    """`70 ± 1 %`; `87 – 100 %` where the error reaches beyond none or all of it."""
    if error < _DOUBT_SHOWN:
        return percent(fraction)
    fraction = min(1.0, fraction)
    low, high = fraction - error, fraction + error
    if low >= 0 and high <= 1:
        return f"{100 * fraction:.0f}{NBSP}±{NBSP}{percent(error, 0)}"
    # "98 ± 11 %" would claim more than the whole
    return f"{100 * max(0.0, low):.0f}{NBSP}–{NBSP}{percent(min(1.0, high), 0)}"


def _title(who: str, thread: ThreadWaits, parts: list[IPart]) -> str:
    listed = ", ".join(f"{part['label']} {part['text']}" for part in parts)
    return f"{who}: {nanoseconds(thread.wall_ns)} in all: {listed or 'nothing recorded'}"


def legend(bars: Sequence[IBar]) -> list[ILegend]:
    """The parts that occur in any bar, in the order of drawing."""
    seen = {(part["name"], part["label"]) for bar in bars for part in bar["parts"]}
    names = {name for name, _ in seen}
    labels = {name: part_label(name) for name in names}
    if ("idle", NO_BATCH) in seen:
        rest = f", {labels['idle']}" if ("idle", labels["idle"]) in seen else ""
        labels["idle"] = f"{NO_BATCH}{rest}"
    return [ILegend(name=name, label=labels[name]) for name in PARTS if name in names]


def ceiling_bars(
    ceilings: Sequence[Ceiling], throughput: Throughput | None
) -> tuple[list[ICeiling], INow | None]:
    """Ceilings, lowest first, and the measured throughput, on one axis that starts at zero.

    `limiting` are the lowest ceiling and those that cannot be told apart from it.
    """
    known = sorted(
        (c for c in ceilings if math.isfinite(c.samples_per_s) and c.samples_per_s > 0),
        key=lambda ceiling: ceiling.samples_per_s,
    )
    now = throughput.samples_per_s if throughput else 0.0
    if not known:
        return [], None
    axis = ceiling_axis(known, now)
    rows = [
        ICeiling(
            label=clean(ceiling.label, 60),
            fraction=round(min(1.0, ceiling.samples_per_s / axis), 4),
            text=_ceiling_text(ceiling, ceiling.samples_per_s > axis),
            how=clean(ceiling.how, 300),
            limiting=limits(ceiling, known[0]),
        )
        for ceiling in known
    ]
    if now <= 0:
        return rows, None
    return rows, INow(fraction=round(min(1.0, now / axis), 4), text=f"now {rate(now)}")


def limits(ceiling: Ceiling, lowest: Ceiling) -> bool:
    """Whether a ceiling cannot be told apart from the lowest. One of which only the lower end is
    known says nothing of the kind, and one at several times the lowest is not taken for it however
    wide its interval is."""
    reach = lowest.high if math.isfinite(lowest.high) else lowest.samples_per_s
    return (
        math.isfinite(ceiling.high)
        and min(ceiling.low, ceiling.samples_per_s) <= max(reach, lowest.samples_per_s)
        and ceiling.samples_per_s <= _NOT_TOLD_APART * lowest.samples_per_s
    )


def ceiling_axis(known: Sequence[Ceiling], now: float) -> float:
    """Where the shared axis of ceilings (lowest first) ends, in samples/s."""
    limit = _AXIS_MULTIPLE * max(now, known[0].samples_per_s)
    return max(now, min(known[-1].samples_per_s, limit))


def _ceiling_text(ceiling: Ceiling, beyond: bool) -> str:
    text = significant(ceiling.samples_per_s)
    low, high = significant(ceiling.low), significant(ceiling.high)
    if low != high and ceiling.low < ceiling.high < math.inf:
        text += f" ({low} – {high})"
    return f"{text}, beyond this scale" if beyond else text
