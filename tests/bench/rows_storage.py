"""Rows of the sections on storage engines and on stacks by state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.row import Row, reached

FIO_NOTE = """\
One file of 64 MiB, read past the page cache by our own engines and by fio, in turns. Median of the
ratios of runs that follow each other, with a bootstrap interval. Both need the processor for each
request, and run at the highest priority that they are allowed.
"""

HOW_JOINED = """\
How stacks and states are joined. py-spy writes no time of a sample that could be compared with
another clock, and no state; a thread that samples stacks from inside sees other threads mostly
where they let go of the interpreter lock (GIL). So a thread inside each process reads, about
twenty times a second, the main thread's `syscall` and its stack in one go without letting go of
the GIL: until it does, no other thread can run Python, and the stack is the one of that wait.
Instants at which the thread ran are dropped, and so are those for which the GIL had to be waited
for: they come at the beginning of a wait and would favour what follows long work. Which part of the
time was spent in which state comes from the states read from outside and from exact thread times.

The loader below waits for a slow file (FUSE) in `read_rows`, burns CPU in `burn` and, in the second
half of the table, waits for the same file in `read_labels` for every other sample. Its functions
take their own blocked time from the kernel. All are parts of the time inside fetches; where other
programs keep the cores busy, standing in line for a core makes up the rest.
"""


def storage_fio_rows(result: dict[str, Any]) -> Iterator[Row]:
    """Ratios to fio: reached where the ratio lies within the goal, on either side."""
    if "skipped" in result:
        yield Row("against fio", "not measured", result["skipped"], "", "")
        return
    told = {
        "health check, sequential read": (result["health"]["read"], 0.10),
        "health check, random read, median latency": (result["health"]["random"], 0.20),
    }
    for name, found in result["engines"].items():
        told[f"bench `engines`, {name}, requests a second"] = (found, 0.15)
    for what, ((value, low, high), goal) in told.items():
        met = abs(value - 1) <= goal
        surely = abs(low - 1) <= goal and abs(high - 1) <= goal
        never = not met and (low > 1 + goal or high < 1 - goal)
        yield Row(
            what,
            f"× {value:.2f} of fio's",
            f"{low:.2f} to {high:.2f}",
            f"within {goal:.0%}",
            ("met" if met else "not met") + ("" if surely or never else ", within doubt"),
        )


def blocked_rows(result: dict[str, Any]) -> Iterator[Row]:
    if "skipped" in result:
        yield Row("stacks by state", "not measured", result["skipped"], "", "")
        return
    for run in result["runs"]:
        for name, row in run["found"].items():
            off = 100 * (row["said"] - row["true"])
            half = 196 * row["error"]
            goal = f"within 5 of {100 * row['true']:.1f} %" if run["wait_ms"] >= 5 else ""
            what = f"`{name}`, waits of {run['wait_ms']:g} ms"
            if len(run["found"]) > 1:
                what += ", two functions"
            yield Row(
                what,
                f"{100 * row['said']:.1f} % (off by {off:+.1f}); one wait "
                f"{row['mean_wait_ms']:.1f} ms",
                f"± {half:.1f} points of sampling, {row['instants']} instants",
                goal,
                (reached(abs(off), 5.0) if goal else ""),
            )
    cost = result["cpu_fraction"]
    yield Row(
        "CPU of the sampling thread, a process, share of a core",
        f"{cost:.2%}",
        "the highest of all processes",
        "at most 1%",
        reached(cost, 0.01),
    )
