"""The table of measurements.md, from the scripts' results and nothing else."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

INTRODUCTION = """\
# Measurements

What ioscope costs and how often it errs, as `make bench` measured it. The file is written by
that command; the scripts are in `tests/bench/`. Your machine gives other numbers: run it there.

Intervals are 95 %. A ratio compares runs that alternated in one process, so that the machine's
other work falls on both sides. *Met* says whether the value reached the goal; *within doubt* that
the interval reaches to both sides of the goal.
"""


class Row(NamedTuple):
    """One line of the table. `value` and the interval are in the unit of `goal`."""

    what: str
    measured: str
    interval: str
    goal: str
    met: str


def page(results: dict[str, Any]) -> str:
    """The whole file: one section for each script that has a result."""
    parts = [INTRODUCTION]
    for name, (title, rows) in SECTIONS.items():
        if name in results:
            result = results[name]
            note = f"{NOTES[name]}\n" if name in NOTES else ""
            parts.append(f"## {title}\n\n{note}{table(list(rows(result)))}\n{where(result)}\n")
    return "\n".join(parts)


def where(result: dict[str, Any]) -> str:
    quick = "; quick run, few repetitions" if result["quick"] else ""
    return f"{result['machine']}; {result['date']}{quick}."


def table(rows: list[Row]) -> str:
    """A Markdown table."""
    head = "| what | measured | interval | goal | reached |\n|---|---|---|---|---|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def judged(value: float, low: float, high: float, goal: float) -> str:
    """Whether an upper goal was reached, honestly where the interval straddles it."""
    if high <= goal:
        return "met"
    if low > goal:
        return "not met"
    return f"{'met' if value <= goal else 'not met'}, within doubt"


def reached(value: float, goal: float) -> str:
    return "met" if value <= goal else "not met"


def slowdown_rows(result: dict[str, Any]) -> Iterator[Row]:
    goals = {"stacks": 0.03, "no stacks": 0.01}
    for workload in ("decode-bound", "pure Python", "tiny batches"):
        for arm, goal in goals.items():
            value, low, high = (result[workload][arm][key] - 1 for key in ("value", "low", "high"))
            yield Row(
                f"CPU per sample, {workload}, {arm}",
                signed_percent(value),
                f"{signed_percent(low)} to {signed_percent(high)}",
                f"at most +{goal:.0%}",
                judged(value, low, high, goal),
            )


def helper_rows(result: dict[str, Any]) -> Iterator[Row]:
    for kind, name, goal in (
        ("sampler", "sampler, share of a core", 0.015),
        ("py_spy", "py-spy, share of a core after six seconds", 0.06),
    ):
        value, told = result[f"{kind}_cores"], result[f"reported_{kind}_cores"]
        yield Row(
            name,
            f"{value:.1%}",
            f"the report said {told:.1%} of the whole",
            f"at most {goal:.1%}",
            reached(value, goal),
        )
    first = result["py_spy_first_cores"]
    yield Row("py-spy, its start and its first six seconds", f"{first:.1%}", "", "none set", "")


def recording_rows(result: dict[str, Any]) -> Iterator[Row]:
    for name, where_it_is in (("worker", "in its worker"), ("loop", "in the loop")):
        without, more = result[f"{name}_us"]
        yield Row(
            f"CPU that recording a batch of four tiny samples takes {where_it_is}",
            f"{more:.1f} µs",
            f"beside {without:.1f} µs of torch's own there, with queues that cost nothing",
            "none set",
            "",
        )


def import_rows(result: dict[str, Any]) -> Iterator[Row]:
    value = result["import_ms"]
    yield Row("`import ioscope`", f"{value:.0f} ms", "", "at most 100 ms", reached(value, 100))
    loaded = ", ".join(result["loads"]) or "none"
    yield Row("heavy packages it loads", loaded, "", "none", reached(len(result["loads"]), 0))


def live_panel_rows(result: dict[str, Any]) -> Iterator[Row]:
    value = statistics.median(result["extra"])
    low, high = min(result["extra"]), max(result["extra"])
    yield Row(
        "kernel's CPU with the panel open, beyond closed, share of a core",
        f"{value:.2%}",
        f"{low:.2%} to {high:.2%} in {len(result['extra'])} pairs",
        "at most 0.5%",
        judged(value, low, high, 0.005),
    )


def report_rows(result: dict[str, Any]) -> Iterator[Row]:
    value, size_kb = result["report_s"], result["output_bytes"] / 1e3
    yield Row(
        "end of the cell to the report",
        f"{value:.2f} s",
        f"slowest {result['report_max_s']:.2f} s",
        "at most 2 s",
        reached(value, 2),
    )
    yield Row(
        "report in the notebook file",
        f"{size_kb:.0f} kB",
        "",
        "at most 150 kB",
        reached(size_kb, 150),
    )


def comparison_rows(result: dict[str, Any]) -> Iterator[Row]:
    tries, alarms = result["same_arm_comparisons"], result["false_alarms"]
    yield Row(
        "same arm twice called different",
        f"{round(alarms['value'] * tries)} of {tries}",
        f"{alarms['low']:.0%} to {alarms['high']:.0%}",
        "at most 1 of 20",
        judged(alarms["value"], alarms["low"], alarms["high"], 0.05),
    )
    found = [verdict == "faster" for verdict in result["factor_verdicts"]]
    slowest = max(result["factor_seconds"])
    ratios = ", ".join(f"{value:.2f}" for value, _, _ in result["factor_ratios"])
    yield Row(
        f"a true factor of {result['true_factor']} found",
        f"{sum(found)} of {len(found)}, slowest {slowest:.0f} s",
        f"ratios {ratios}",
        "within 60 s",
        reached(slowest, 60) if all(found) else "not met",
    )
    if "sequences" not in result:
        return  # kept from a run of before these rows
    yield from cpu_factor_rows(result)
    for name, words in (("throughput", "throughput"), ("cpu", "CPU per sample")):
        made, tries = result[name], result["sequences"]
        alarms = made["alarms"]
        yield Row(
            f"simulated, same arm twice called different at any of 40 looks, {words}",
            f"{round(alarms['value'] * tries)} of {tries:,}",
            f"{alarms['low']:.1%} to {alarms['high']:.1%}; pairs differ by {made['sd']:.1%}",
            "at most 5 %",
            judged(alarms["value"], alarms["low"], alarms["high"], 0.05),
        )
        for factor, pairs in made["pairs_needed"].items():
            yield Row(
                f"simulated, pairs until 80 % find a true factor of {factor}, {words}",
                str(pairs) if pairs else "more than 40",
                "",
                "",
                "",
            )


def cpu_factor_rows(result: dict[str, Any]) -> Iterator[Row]:
    found = [low > 1 for _, low, _ in result["cpu_ratios"]]
    ratios = ", ".join(f"{value:.2f}" for value, _, _ in result["cpu_ratios"])
    slowest = max(result["cpu_seconds"])
    yield Row(
        f"a true factor of {result['cpu_factor']} found by CPU per sample",
        f"{sum(found)} of {len(found)}, slowest {slowest:.0f} s",
        f"ratios {ratios}; other programs used {result['external_cores']:.1f} cores",
        "80 % within 60 s",
        reached(slowest, 60) if sum(found) >= 0.8 * len(found) else "not met",
    )


def leak_rows(result: dict[str, Any]) -> Iterator[Row]:
    left = ", ".join(f"{count} {what}" for what, count in sorted(result["left"].items()))
    where = "own /dev/shm" if result["own_shared_memory"] else "the machine's /dev/shm"
    yield Row(
        f"left by {result['runs']} comparisons cancelled at random moments: processes, threads, "
        "shared memory, temporary files, descriptors",
        left or "none",
        f"{result['with_pairs']} had pairs; {where}",
        "none",
        reached(len(result["left"]), 0),
    )
    yield Row(
        "from the cancel to the end", f"{result['slowest_end_s']:.2f} s at most", "", "1 s",
        reached(result["slowest_end_s"], 1.0),
    )  # fmt: skip


def setting_rows(result: dict[str, Any]) -> Iterator[Row]:
    loads = result["loads"]
    for name, row in loads.items():
        count = len(row["rows"])
        yield Row(
            f"predicted against measured, {name}",
            f"off by {row['median_error']:.1%} (median of {count})",
            f"{row['covered']} of {count} inside; two runs of one setting: {row['noise']:.1%}",
            "",
            "",
        )
    errors = [
        abs(math.log(one["predicted"] / one["measured"]))
        for row in loads.values()
        for one in row["rows"]
    ]
    covered = sum(row["covered"] for row in loads.values()) / len(errors)
    regrets = sorted(row["regret"] for row in loads.values())
    runs = max(row["runs"] for row in loads.values())
    median, most = statistics.median(regrets), regrets[round(0.9 * (len(regrets) - 1))]
    off = statistics.median(errors)
    yield Row("all of them, median", f"off by {off:.1%}", "", "at most 7 %", reached(off, 0.07))
    yield Row(
        "90 % intervals that held the measured value",
        f"{covered:.0%}",
        f"of {len(errors)}",
        "at least 85 %",
        reached(0.85, covered),
    )
    yield Row(
        "what the search loses against the best of the grid",
        f"{median:.1%} (median)",
        f"90th percentile {most:.1%}, at most {runs} runs",
        "at most 3 %, 8 % and 6 runs",
        "met" if median <= 0.03 and most <= 0.08 and runs <= 6 else "not met",
    )


def sample_cache_rows(result: dict[str, Any]) -> Iterator[Row]:
    for name, what in (("picture", "150 kB a sample"), ("tokens", "2 kB a sample")):
        rate, many = result[f"{name}_hits_per_s"], result[f"{name}_hits_per_s_of_4"]
        # A hit waits for nothing: what others leave of a core is no property of the cache.
        by_cpu = 1e6 / result[f"{name}_hit_cpu_us"]
        yield Row(
            f"hits in a second of CPU, {what}",
            f"{by_cpu:,.0f}",
            f"by the clock {rate:,.0f}, four processes together {many:,.0f}",
            "at least 12,000",
            reached(12_000, by_cpu),
        )
        hit_us = result[f"{name}_hit_us"]
        yield Row(
            f"a hit, {what}",
            f"{hit_us:.0f} µs",
            f"{result[f'{name}_hit_cpu_us']:.0f} µs of CPU",
            "less than 100 µs",
            reached(hit_us, 100),
        )
    limit, taken = result["limit_bytes"], result["system_bytes"]
    off = taken / limit - 1
    yield Row(
        "memory of a full cache against its limit",
        signed_percent(off),
        f"{result['payload_bytes'] / limit:.1%} are samples",
        "within 5 %",
        reached(abs(off), 0.05),
    )


def hf_step_rows(result: dict[str, Any]) -> Iterator[Row]:
    """Every value of every step, then what the last step brings against each beginning."""
    gains: dict[str, dict[str, float]] = {name: {} for name in HF_GOALS}
    for kind, found in result["sets"].items():
        for step, values in found["steps"].items():
            for name, (what, show) in HF_VALUES.items():
                middle, low, high = (show(value) for value in values[name])
                several = f"{low} to {high}" if found["runs"] > 1 else "one run"
                yield Row(f"{kind}, {HF_STEPS[step]}: {what}", middle, several, "", "")
        for step in ("list", "memory"):
            if step in found["steps"]:
                first, last = found["steps"][step], found["steps"]["everything"]
                name = f"{kind}, from {HF_STEPS[step]}"
                gains["samples_per_s"][name] = last["samples_per_s"][0] / first["samples_per_s"][0]
                for what in ("cpu_ms", "peak_bytes", "first_s"):
                    gains[what][name] = first[what][0] / last[what][0]
    yield Row(
        "threads that wanted a core meanwhile", f"{result['load']:.0f}", "load average", "", ""
    )
    for name, (what, goal) in HF_GOALS.items():
        all_of_it = "; ".join(f"{start} × {gain:.1f}" for start, gain in gains[name].items())
        best = max(gains[name].values())
        wanted = f"at least × {goal:g} on one set" if goal else ""
        yield Row(what, all_of_it, "", wanted, reached(goal, best) if goal else "")


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


def signed_percent(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


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


HF_STEPS = {
    "list": "a list of samples",
    "memory": "kept in memory",
    "mapped": "mapped, torch's format",
    "everything": "everything",
}
HF_VALUES: dict[str, tuple[str, Callable[[float], str]]] = {
    "samples_per_s": ("samples a second", lambda value: f"{value:,.0f}"),
    "cpu_ms": ("CPU a sample", lambda value: f"{value:.3f} ms"),
    "first_s": ("load to first batch", lambda value: f"{1e3 * value:,.0f} ms"),
    "peak_bytes": ("highest memory", megabytes),
    "peak_own_bytes": ("highest memory without pages of files", megabytes),
}
HF_GOALS = {
    "samples_per_s": ("everything: samples a second higher by", 3.7),
    "cpu_ms": ("everything: CPU a sample less by", 0.0),
    "peak_bytes": ("everything: highest memory lower by", 4.0),
    "first_s": ("everything: load to first batch shorter by", 10.0),
}
HF_NOTE = """\
Two sets: 100,000 rows of 128 token ids, a mask and a text, and photographs that are brought to
224 x 224 (a quick run takes fewer). *A list of samples*: `to_list()`, as in a dataset class that
holds its samples, with two workers. *Kept in memory*: loaded with `keep_in_memory=True`, rows are
Python lists (photographs: decoded pictures), two workers. *Mapped*: the table stays in its file,
rows are tensors. *Everything*: text in the narrowest types on disk, only the columns that are used,
a batch from one call as an Arrow table whose columns become tensors, no workers; photographs
encoded until the decoder may leave out detail (their pixels differ slightly). Every run is a
process of its own, steps take turns, all files are in the page cache. Medians, and lowest to
highest in the third column. Memory is the proportional set size of the process and its workers,
with Python, torch and `datasets` in it. It holds pages of mapped files that were read, which the
system takes back when it needs memory.
"""
FIO_NOTE = """\
One file of 64 MiB, read past the page cache by our own engines and by fio, in turns. Median of the
ratios of runs that follow each other, with a bootstrap interval. Both need the processor for each
request, and run at the highest priority that they are allowed.
"""
NOTES = {"storage_fio": FIO_NOTE, "blocked_stacks": HOW_JOINED, "hf_steps": HF_NOTE}


def picture_rows(result: dict[str, Any]) -> Iterator[Row]:
    rows = (
        ("first paint of a report after its data arrived", "paint_ms", 500.0),
        ("flame graph of 100,000 frames, one whole redraw", "draw_ms", 100.0),
        ("a step of the selection: bars, batches, outliers, waits", "brush_ms", 100.0),
    )
    for what, key, goal in rows:
        ms = result[key]
        yield Row(what, f"{ms:.0f} ms", "", f"at most {goal:.0f} ms", judged(ms, ms, ms, goal))
    for what, key in (("JupyterLab extension", "extension_bytes"), ("saved page", "page_bytes")):
        size = result[key]
        yield Row(
            f"scripts, {what}",
            f"{size / 1e3:.0f} kB",
            "",
            "at most 250 kB",
            judged(size, size, size, 250e3),
        )


def block_trace_rows(result: dict[str, Any]) -> Iterator[Row]:
    if "skipped" in result:
        yield Row("tracing block devices", "not measured", result["skipped"], "", "")
        return
    median, low, high = result["helper_us"]
    speed = f"{result['requests_per_s']:,.0f} requests a second"
    span = f"{low / 100:.2f} to {high / 100:.2f} s, {speed}"
    yield Row("CPU of the helper process, 10,000 requests", f"{median / 100:.2f} s", span, "", "")
    median, low, high = result["reader_us"]
    span = f"{low:.1f} to {high:.1f} µs, of {result['plain_us']:.0f} µs without"
    yield Row("CPU of the program that asks, a request, more", f"{median:.1f} µs", span, "", "")
    lost = f"{result['lost']:,} of {result['events'] + result['lost']:,}"
    yield Row("events lost", lost, "those of other programs too", "", "")


SECTIONS = {
    "slowdown": ("Slow-down of the profiled cell, two workers", slowdown_rows),
    "recording": ("Recording one batch, without all else", recording_rows),
    "helpers": ("CPU of the helper processes, a kernel and two workers", helper_rows),
    "import_time": ("Import", import_rows),
    "report_time": ("Report", report_rows),
    "picture": ("Report in Chromium", picture_rows),
    "live_panel": ("Live panel, an idle kernel with two workers", live_panel_rows),
    "comparisons": ("Comparisons", comparison_rows),
    "leaks": ("What cancelled comparisons leave behind", leak_rows),
    "sample_cache": ("Cache of samples", sample_cache_rows),
    "storage_fio": ("Our own storage engines against fio", storage_fio_rows),
    "settings": ("Predictions of workers x prefetch, and the search", setting_rows),
    "hf_steps": ("Hugging Face datasets in three steps", hf_step_rows),
    "blocked_stacks": ("Stacks by state: a loader with a known split", blocked_rows),
    "block_trace": ("Tracing the requests of block devices", block_trace_rows),
}
