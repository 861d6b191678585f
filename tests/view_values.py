"""Diagnoses and odd profiles for the tests of the views."""

from __future__ import annotations

import dataclasses
import unicodedata
from types import MappingProxyType

from jupyter_ioscope.model.diagnosis import (
    Ceiling,
    Diagnosis,
    Finding,
    Part,
    ThreadWaits,
    Throughput,
    Unknown,
    Waits,
)
from jupyter_ioscope.model.profile import Gap, Profile
from jupyter_ioscope.model.readings import Frame, Series, Stack, Stacks
from tests import builders

HOSTILE = (
    "<script>alert(\"x\")</script> & 'q' \x1b[31mred\x1b[0m \x07\u202eevil\u202c onerror=x\nnext"
)
UNICODE = "データ読込 مرحبا שלום 👩‍🔬 naïve"


def thread(worker: int = -1, wall_ns: int = 10**9, **fractions: float) -> ThreadWaits:
    """A thread whose parts are fractions of its wall time; what is left is `rest`."""
    fractions.setdefault("rest", 1.0 - sum(fractions.values()))
    parts = tuple(
        Part(name, round(f * wall_ns), round(0.01 * f * wall_ns)) for name, f in fractions.items()
    )
    who = "consumer" if worker < 0 else "worker"
    return ThreadWaits(who, worker, 100 + worker, wall_ns, parts)


def waits(workers: int = 2) -> Waits:
    consumer = thread(step=0.16, hand_over=0.02, cpu=0.01, idle=0.80)
    rows = tuple(thread(n, cpu=0.7, run_queue=0.13, disk=0.05, idle=0.1) for n in range(workers))
    return Waits(consumer, rows, 0.81, 0.01)


def diagnosis(**changes: object) -> Diagnosis:
    """A decode-bound loader's diagnosis, with some fields replaced."""
    value = Diagnosis(
        headline="The loop waited for data 81 % of the time.",
        detail="Workers are busy decoding.",
        findings=(
            Finding("decode", "worker_cpu", "Workers decode", 0.68, 0.64, 0.72, 4.1,
                    ("1,203 of 1,770 samples are in decode",), "Decode fewer pixels.",
                    ("draft_decode",), "decode in In [4], line 12"),
        ),
        separated=True,
        would_separate="",
        margin=0.5,
        waits=waits(),
        throughput=Throughput(214.2, 6.1, 26.8, 1.93, 100, 800),
        ceilings=(
            Ceiling("storage", "storage", 1300, 1200, 1400, "120 MB/s"),
            Ceiling("worker_pool", "2 workers", 226, 214, 239, "8.8 ms a sample"),
            Ceiling("cpu", "CPU (2 cores)", 231, 220, 243, "8.6 ms CPU a sample"),
            Ceiling("hand_over", "hand-over", 1e9, 9e8, float("inf"), "almost nothing"),
        ),
        unknown=(Unknown("gil", "another process cannot be seen"),),
        not_measured=(Gap("block-layer latency", "needs root"),),
    )  # fmt: skip
    return dataclasses.replace(value, **changes)  # type: ignore[arg-type]


def empty_diagnosis() -> Diagnosis:
    """What there is to say about a cell without a loader."""
    return Diagnosis("", "", (), True, "", 0.0, Waits(None, (), 0.0, 0.0), None, (), (), ())


def profile(workers: int = 2, **options: object) -> Profile:
    """A simulated profile with every series that the report shows."""
    value = builders.profile(workers, fetch_ms=20.0, **options)  # type: ignore[arg-type]
    return builders.without(value, series=MappingProxyType(series(value)))


def series(value: Profile) -> dict[str, Series]:
    times = tuple(range(value.start_ns, value.end_ns, max(1, value.wall_ns // 40)))
    grows = tuple(float(i) for i in range(len(times)))
    made = (
        ("tree_cpu_ns", "ns", "cumulative", "tree", tuple(2e6 * i for i in grows)),
        ("tree_pss_bytes", "bytes", "gauge", "tree", tuple(1e9 + 1e7 * i for i in grows)),
        ("tree_read_bytes", "bytes", "cumulative", "tree", tuple(5e6 * i for i in grows)),
        ("psi_io_some_us", "us", "cumulative", "machine", tuple(100.0 * i for i in grows)),
        ("gpu0_busy_fraction", "fraction", "gauge", "device", (0.17,) * len(times)),
        ("gpu0_memory_bytes", "bytes", "gauge", "device", (2e9,) * len(times)),
    )
    return {name: Series(name, unit, kind, scope, times, v) for name, unit, kind, scope, v in made}


def stacks(count: int, depth: int = 20, workers: int = 4, names: int = 400) -> Stacks:
    """`count` different stacks of realistic depth that share their outer frames."""
    library = "/env/lib/python3.11/site-packages/package/module_with_a_name.py"
    frames = tuple(Frame(f"function_{i}", library, i) for i in range(names))
    made = []
    for i in range(count):
        outer = tuple(range(depth - 4))
        inner = tuple((i * step + step) % names for step in (7, 11, 13, 17))
        role, worker = ("consumer", -1) if i % 5 == 0 else ("worker", i % workers)
        made.append(Stack(role, worker, 100 + worker, "MainThread", outer + inner, 1 + i % 3))
    return Stacks("py-spy", 25.0, True, frames, tuple(made))


def is_inert(text: str) -> bool:
    """Whether a text holds nothing that a terminal or a page obeys; line feeds are the view's."""
    controls = (c for c in text if unicodedata.category(c) == "Cc" and c != "\n")
    directions = (c for c in text if c in "\u061c\u200e\u200f" or "\u202a" <= c <= "\u202e")
    return not any(controls) and not any(directions) and "\x1b" not in text
