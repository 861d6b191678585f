"""Rows of the section on Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.row import Row, megabytes, reached

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
