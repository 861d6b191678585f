"""Workers copy the dataset's Python objects, page by page, by reading them."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.memory_facts import (
    PAGE_BYTES,
    USUAL_COPY_BYTES,
    copied_by_workers,
    faults_of_workers,
    memory_budget_bytes,
)
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent

# Beyond what any forked worker copies: as much again in each, and together enough to matter.
LEAST_WORKER_BYTES = USUAL_COPY_BYTES
LEAST_BYTES = 64_000_000
# CPU of a fault that copies a page: measured 0.5 to 1 microsecond, with the copy of 4 kB.
FAULT_S = 0.7e-6


def judge(facts: Facts) -> Finding | None:
    """Memory is the harm: `share` is only the CPU of the faults. It comes before causes that take
    time because it grows with every sample read, in every worker, until each holds a copy of all:
    that ends runs, and fewer or faster batches do not help.
    """
    if facts.alone or facts.loader.start_method not in (None, "fork"):
        return None
    if max(faults_of_workers(facts.profile).values(), default=0) * PAGE_BYTES < LEAST_WORKER_BYTES:
        return None  # a page copied while items are read is a fault of a fetch
    copied = copied_by_workers(facts.profile)
    if copied.bytes < max(LEAST_BYTES, LEAST_WORKER_BYTES * copied.workers):
        return None
    rows = facts.fetches
    cpu_ns = sum(row.cpu_ns for row in rows)
    samples = max(1, sum(max(0, row.samples) for row in rows))
    spent_ns = copied.bytes / PAGE_BYTES * FAULT_S * 1e9
    budget = memory_budget_bytes(facts.profile.machine)
    each = bytes_text(copied.bytes / copied.workers)
    return finding(
        facts,
        facts.gain_cpu(min(1.0, spent_ns / cpu_ns) if cpu_ns else 0.0),
        cause="cow_python_objects",
        resource="memory",
        title="Workers copy the dataset's memory just by reading it",
        evidence=(
            f"The {copied.workers} workers copied {bytes_text(copied.bytes)} of memory that they "
            f"shared with this process at their start, {each} each"
            + (f" ({percent(copied.bytes / budget)} of the memory there is)." if budget else "."),
            f"Pages were copied while items were read: {bytes_text(copied.bytes / samples)} a "
            "sample."
            if copied.while_fetching
            else "",
            _rest(facts, copied.bytes, samples),
        ),
        advice="Hold the dataset's lists, dicts and strings in a few large buffers instead: a "
        "numpy array (of bytes for strings), a tensor, an Arrow table or a datasets.Dataset. "
        "Reading a Python object writes its reference count, which copies its page into every "
        "worker; buffers stay shared.",
        harm="memory",
    )


def _rest(facts: Facts, copied: int, samples: int) -> str:
    """How far it has come, where the dataset's length is known."""
    total = facts.loader.samples_total or 0
    if not total or samples >= total:
        return "It goes on in every epoch, until each worker has copied all of it."
    return (
        f"That is after {samples:,} of {total:,} samples: it goes on to about "
        f"{bytes_text(copied * total / samples)} in this epoch."
    )


RULE = Rule("cow", judge)
