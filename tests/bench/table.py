"""The table of measurements.md, from the scripts' results and nothing else."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

from tests.bench.row import Row, judged, reached, signed_percent, table
from tests.bench.rows_gains import GAINS_NOTE, toggle_gain_rows
from tests.bench.rows_hf import HF_NOTE, hf_step_rows
from tests.bench.rows_storage import FIO_NOTE, HOW_JOINED, blocked_rows, storage_fio_rows

INTRODUCTION = """\
# Measurements

What ioscope costs and how often it errs, as `make bench` measured it. The file is written by
that command; the scripts are in `tests/bench/`. Your machine gives other numbers: run it there.

Intervals are 95 %. A ratio compares runs that alternated in one process, so that the machine's
other work falls on both sides. *Met* says whether the value reached the goal; *within doubt* that
the interval reaches to both sides of the goal.
"""


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


def instruction_rows(result: dict[str, Any]) -> Iterator[Row]:
    if "skipped" in result:
        yield Row("instructions a batch", "not counted", result["skipped"], "", "")
        return
    for workload in ("decode-bound", "pure Python", "tiny batches"):
        counted = result[workload]
        more = [ratio - 1 for ratio in counted["ratios"]]
        low, high = signed_percent(min(more)), signed_percent(max(more))
        yield Row(
            f"instructions a batch, {workload}, no stacks",
            signed_percent(statistics.median(more)),
            f"{low} to {high} in {len(more)} runs" if len(more) > 1 else "one run",
            "none set",
            f"of {counted['per_batch'] / 1e6:,.1f} million",
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


def live_update_rows(result: dict[str, Any]) -> Iterator[Row]:
    minutes = result["cell_s"] / 60
    for name, words in (("line", "live line"), ("panel", "live panel")):
        found = result[name]
        sent, lost = found["sent"], found["lost"]
        yield Row(
            f"updates of the {words} that arrived in {minutes:.0f} minutes",
            f"{sent - lost:,} of {sent:,}",
            f"{found['out_of_order']} out of order; longest pause {found['longest_pause_s']:.1f} s",
            "none lost",
            reached(lost, 0) if sent else "not met",
        )
        most = found["most_a_second"]
        yield Row(f"the most of them in any second, {words}", str(most), "", "at most 4",
                  reached(most, 4))  # fmt: skip


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
    """The pairs end as soon as the throughput is clear; often its CPU is not clear by then."""
    by_cpu = [low > 1 for _, low, _ in result["cpu_ratios"]]
    verdicts = result["cpu_factor_verdicts"]
    found = sum(cpu or v == "faster" for cpu, v in zip(by_cpu, verdicts, strict=True))
    ratios = ", ".join(f"{value:.2f}" for value, _, _ in result["cpu_ratios"])
    slowest = max(result["cpu_seconds"])
    yield Row(
        f"a true factor of {result['cpu_factor']} found, by throughput or CPU per sample",
        f"{found} of {len(by_cpu)}, slowest {slowest:.0f} s",
        f"other programs used {result['external_cores']:.1f} cores",
        "80 % within 60 s",
        reached(slowest, 60) if found >= 0.8 * len(by_cpu) else "not met",
    )
    yield Row(
        "its CPU per sample was clear too by the time the throughput was",
        f"{sum(by_cpu)} of {len(by_cpu)}",
        f"ratios of CPU per sample {ratios}",
        "none set",
        "",
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


INSTRUCTIONS_NOTE = """\
Single runs of pure Python differ by a percent or two: +1.4 % and +2.6 % were seen; why is not
known.
"""
NOTES = {
    "instructions": INSTRUCTIONS_NOTE,
    "storage_fio": FIO_NOTE,
    "blocked_stacks": HOW_JOINED,
    "hf_steps": HF_NOTE,
    "toggle_gains": GAINS_NOTE,
}


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
    "instructions": ("Instructions of the profiled loop, two workers", instruction_rows),
    "recording": ("Recording one batch, without all else", recording_rows),
    "helpers": ("CPU of the helper processes, a kernel and two workers", helper_rows),
    "import_time": ("Import", import_rows),
    "report_time": ("Report", report_rows),
    "picture": ("Report in Chromium", picture_rows),
    "live_panel": ("Live panel, an idle kernel with two workers", live_panel_rows),
    "live_updates": ("Live updates while a cell runs, two workers", live_update_rows),
    "comparisons": ("Comparisons", comparison_rows),
    "leaks": ("What cancelled comparisons leave behind", leak_rows),
    "sample_cache": ("Cache of samples", sample_cache_rows),
    "storage_fio": ("Our own storage engines against fio", storage_fio_rows),
    "settings": ("Predictions of workers x prefetch, and the search", setting_rows),
    "toggle_gains": ("Toggles on cases, beside their fixes", toggle_gain_rows),
    "hf_steps": ("Hugging Face datasets in three steps", hf_step_rows),
    "blocked_stacks": ("Stacks by state: a loader with a known split", blocked_rows),
    "block_trace": ("Tracing the requests of block devices", block_trace_rows),
}
