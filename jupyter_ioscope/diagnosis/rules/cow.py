"""Workers copy the dataset's Python objects, page by page, by reading them."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.memory_facts import (
    COLLECTION_BYTES,
    PAGE_BYTES,
    USUAL_COPY_BYTES,
    Copied,
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
# What a collection copies is copied once, so it is a harm only where it is a good part of the
# memory there is: that of many workers, or of a large heap.
COLLECTED_FRACTION = 0.05


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
        return _by_the_collector(facts, copied)
    samples = max(1, sum(max(0, row.samples) for row in facts.fetches))
    budget = memory_budget_bytes(facts.profile.machine)
    each = bytes_text(copied.bytes / copied.workers)
    return _copies(
        facts,
        copied.bytes,
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
    )


def _by_the_collector(facts: Facts, copied: Copied) -> Finding | None:
    """The collector writes to the head of every container it looks at, and so copies its page."""
    budget = memory_budget_bytes(facts.profile.machine)
    size, each = copied.collected_bytes, copied.collected_bytes / copied.workers
    if each < COLLECTION_BYTES or not budget or size < COLLECTED_FRACTION * budget:
        return None
    return _copies(
        facts,
        size,
        title="Python's garbage collector copies shared memory into every worker",
        evidence=(
            f"Fetches in which it ran copied {bytes_text(size)} that the {copied.workers} workers "
            f"shared with this process, {bytes_text(each)} each ({percent(size / budget)} of the "
            "memory there is).",
            "It looks at every object that is alive, whatever the loader reads, and writes to it: "
            "the page is then the worker's own.",
        ),
        advice="Call gc.collect() and gc.freeze() in this process after the data is loaded and "
        "before the workers are started: the collector then leaves those objects alone, in the "
        "workers too. Arrays instead of lists and dicts of Python objects leave it little to copy.",
    )


def _copies(
    facts: Facts, size: int, *, title: str, evidence: tuple[str, ...], advice: str
) -> Finding:
    """The finding of `size` copied bytes: without them the CPU of their faults would be saved."""
    cpu_ns = sum(row.cpu_ns for row in facts.fetches)
    spent_ns = size / PAGE_BYTES * FAULT_S * 1e9
    return finding(
        facts,
        facts.gain_cpu(min(1.0, spent_ns / cpu_ns) if cpu_ns else 0.0),
        cause="cow_python_objects",
        resource="memory",
        title=title,
        evidence=evidence,
        advice=advice,
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
