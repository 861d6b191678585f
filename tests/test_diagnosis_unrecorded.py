"""Cells that iterate something nobody records: judged as a whole, or left alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_ioscope.capture.generators import generators
from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.observed import BlockedStack, BlockedStacks, LineCalls
from jupyter_ioscope.model.profile import Cell, Generator, Profile
from jupyter_ioscope.model.readings import STATES, Frame, Stack, Stacks, ThreadReadings
from tests import builders
from tests.seen_stacks import CELL, STEP, Row, samples, thread, with_stacks
from tests.simulator import PID, START_NS, S

ITERATES = Frame("Rows.__iter__", "In [4]", 6, 4)
PLAIN = Frame("work", "In [4]", 30, 4)


def causes(diagnosis: Diagnosis) -> list[str]:
    return [row.cause for row in diagnosis.findings]


def cell(
    states: Mapping[str, float],
    *,
    run: float,
    data: float = 0.95,
    helpers: tuple[ThreadReadings, ...] = (),
    cpus: int = 4,
    threads: tuple[tuple[str, str], ...] = (),
    seconds: float = 4.0,
    inside: Frame = ITERATES,
) -> Profile:
    """A cell without a loader; `data` of its samples are below `inside`."""
    value = builders.empty_profile(
        end_ns=START_NS + int(seconds * S),
        machine=dataclasses.replace(builders.machine(cpus), native_threads=threads),
        threads=(thread(seconds, states, run=run), *helpers),
    )
    rows: list[Row] = [
        ("consumer", -1, (CELL, inside), samples(value, data)),
        ("consumer", -1, (STEP, PLAIN), samples(value, 1 - data)),
    ]
    return with_stacks(value, [row for row in rows if row[3]])


def helper(number: int, states: Mapping[str, float], run: float) -> ThreadReadings:
    return thread(4.0, states, run=run, tid=PID + number, role="other", name=f"pool_{number}")


def test_python_threads_in_line_for_the_gil_are_named() -> None:
    pool = tuple(helper(n, {"gil": 0.8, "running": 0.2}, 0.19) for n in range(1, 6))
    diagnosis = diagnose(cell({"futex": 0.9, "running": 0.1}, run=0.05, helpers=pool))
    assert causes(diagnosis) == ["gil_bound_threads"]
    assert diagnosis.findings[0].resource == "gil"
    assert 0.5 < diagnosis.findings[0].share < 0.8  # 4 cores instead of one, for most of the time
    assert "No loader was recognised: the whole cell was judged" in diagnosis.headline
    assert "how many batches it got is not known" in diagnosis.headline


def test_without_ptrace_what_threads_saw_of_themselves_names_the_gil() -> None:
    """States from outside are but "blocked"; of the pool one thread at a time was looked at."""
    pool = tuple(helper(n, {"blocked": 0.8, "running": 0.2}, 0.19) for n in range(1, 6))
    idle = helper(9, {"blocked": 1.0}, 0.0)
    made = cell({"blocked": 0.9, "running": 0.1}, run=0.05, helpers=(*pool, idle))
    instants = tuple(START_NS + 50_000_000 * at for at in range(1, 78))
    rows = (
        BlockedStack("consumer", -1, PID, STATES.index("futex"), (0,), instants),
        BlockedStack("other", -1, PID, STATES.index("gil"), (0,), instants[::2]),
    )
    seen = dataclasses.replace(
        made, tier="no_ptrace", blocked=BlockedStacks(20.0, (ITERATES,), rows)
    )
    assert causes(diagnose(seen)) == ["gil_bound_threads"]
    assert "gil_bound_threads" not in causes(diagnose(dataclasses.replace(seen, blocked=None)))


def test_threads_that_compute_side_by_side_are_healthy() -> None:
    pool = tuple(helper(n, {"running": 0.95, "gil": 0.05}, 0.9) for n in range(1, 5))
    assert causes(diagnose(cell({"futex": 0.95, "running": 0.05}, run=0.05, helpers=pool))) == []


@pytest.mark.parametrize(
    ("state", "resource"),
    [("sleep", "sleep"), ("disk", "disk"), ("page_fault", "page_fault"), ("network", "network"),
     ("poll", "network")],
)  # fmt: skip
def test_an_iterator_that_waits_is_bound_by_latency(state: str, resource: str) -> None:
    diagnosis = diagnose(cell({state: 0.9, "running": 0.1}, run=0.1))
    assert causes(diagnosis) == ["no_workers_latency_bound"]
    assert diagnosis.findings[0].resource == resource
    assert diagnosis.findings[0].share == pytest.approx(0.9, abs=0.06)
    assert diagnosis.findings[0].where == "Rows.__iter__ in In [4], line 6"


def test_waiting_for_a_thread_that_sleeps_is_waiting_for_data() -> None:
    sleeper = helper(1, {"sleep": 0.98, "running": 0.02}, 0.02)
    diagnosis = diagnose(cell({"futex": 0.95, "running": 0.05}, run=0.05, helpers=(sleeper,)))
    assert causes(diagnosis) == ["no_workers_latency_bound"]
    assert "more threads in the pool" in diagnosis.findings[0].advice


def test_where_the_cell_slept_is_where_it_was_seen_and_not_its_iterator() -> None:
    text = diagnose(cell({"sleep": 0.9, "running": 0.1}, run=0.1, data=0.05)).detail
    assert "sleeping, mostly in work in In [4], line 30." in text


def test_a_cell_that_sleeps_outside_any_iterator_waits_for_nobody_knows_what() -> None:
    diagnosis = diagnose(cell({"sleep": 1.0}, run=0.01, inside=PLAIN))
    assert causes(diagnosis) == []
    assert "100 % of the time sleeping" in diagnosis.detail.replace("\xa0", " ")


def test_an_iterator_that_computes_on_one_core_is_named() -> None:
    diagnosis = diagnose(cell({"running": 1.0}, run=0.98))
    assert causes(diagnosis) == ["no_workers_cpu_bound"]
    assert diagnosis.findings[0].share == pytest.approx(0.95 * 0.75, abs=0.05)
    assert causes(diagnose(cell({"running": 1.0}, run=0.98, cpus=1))) == ["decode_cpu"]


def test_a_cell_that_only_computes_is_left_alone_and_told_where() -> None:
    diagnosis = diagnose(cell({"running": 1.0}, run=0.98, inside=PLAIN))
    assert causes(diagnosis) == []
    assert diagnosis.headline.startswith("No DataLoader and no Hugging Face dataset")
    assert "computing, mostly in work in In [4], line 30" in diagnosis.detail


def test_a_step_that_computes_beside_a_quick_iterator_is_left_alone() -> None:
    assert causes(diagnose(cell({"running": 1.0}, run=0.98, data=0.1))) == []


def test_a_library_that_was_told_to_use_one_thread_is_named() -> None:
    value = dataclasses.replace(
        cell({"running": 1.0}, run=0.98, threads=(("TOKENIZERS_PARALLELISM", "false"),)),
        calls=(LineCalls("In [4]", 6, (".encode_batch",)),),
    )
    diagnosis = diagnose(value)
    assert causes(diagnosis) == ["native_threads_off"]
    assert 'TOKENIZERS_PARALLELISM="true"' in diagnosis.findings[0].advice


@pytest.mark.parametrize(
    ("threads", "call"),
    [
        ((("TOKENIZERS_PARALLELISM", "true"),), ".encode_batch"),
        ((), ".encode_batch"),
        ((("TOKENIZERS_PARALLELISM", "false"),), ".split"),
        ((("OMP_NUM_THREADS", "1"),), ".encode_batch"),
    ],
    ids=["on", "not set", "another call", "another library's"],
)
def test_one_busy_core_alone_does_not_blame_a_setting(
    threads: tuple[tuple[str, str], ...], call: str
) -> None:
    value = dataclasses.replace(
        cell({"running": 1.0}, run=0.98, threads=threads),
        calls=(LineCalls("In [4]", 6, (call,)),),
    )
    assert causes(diagnose(value)) == ["no_workers_cpu_bound"]


def test_an_empty_cell_and_a_short_one_have_no_finding() -> None:
    assert causes(diagnose(builders.empty_profile())) == []
    assert causes(diagnose(cell({"running": 1.0}, run=1.0, seconds=0.2))) == []


def test_a_cell_with_a_recorded_loader_is_judged_by_its_batches() -> None:
    value = cell({"sleep": 1.0}, run=0.0)
    loop = builders.profile(0, fetch_ms=0.4, step_ms=20)
    both = dataclasses.replace(loop, stacks=value.stacks)
    assert causes(diagnose(both)) == ["not_loader_bound"]


def test_a_generator_counts_as_an_iterator_by_its_source() -> None:
    source = (
        "def rows():\n    def one():\n        return 1\n    for i in range(9):\n        yield i\n"
    )
    frames = (
        Frame("rows", "In [4]", 5, 4),
        Frame("one", "In [4]", 3, 4),
        Frame("x", "In [9]", 1, 9),
    )
    stacks = Stacks("py-spy", 25.0, True, frames, (Stack("consumer", -1, 1, "", (0, 1, 2), 3),))
    cells = (Cell(4, source), Cell(9, "%%time\nx = 1\n"))
    assert generators(stacks, cells) == (Generator("In [4]", 1, 5),)
    value = cell({"sleep": 1.0}, run=0.0, inside=Frame("rows", "In [4]", 5, 4))
    assert causes(diagnose(value)) == []
    known = dataclasses.replace(value, generators=(Generator("In [4]", 1, 5),))
    assert causes(diagnose(known)) == ["no_workers_latency_bound"]


def run(body: Callable[[], object]) -> Profile:
    profiler = Profiler(CaptureOptions(label="by hand"))
    profiler.start()
    try:
        body()
    finally:
        profile = profiler.stop()
    return profile


def parse(number: int) -> int:
    return sum(int(digit) for n in range(6_000) for digit in str(n * number))


def rows_of_threads() -> Iterator[int]:
    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(parse, range(500))


def slow_rows() -> Iterator[int]:
    for number in range(60):
        time.sleep(0.015)
        yield number


@pytest.mark.timeout(240)
def test_real_loaders_written_by_hand(tmp_path: Path) -> None:
    assert first_cause(lambda: list(slow_rows()), "no_workers_latency_bound")
    assert causes(diagnose(run(lambda: [parse(n) for n in range(60)]))) in ([], ["cores_taken"])
    if run(list).machine.cpus_usable >= 2:
        assert first_cause(lambda: list(rows_of_threads()), "gil_bound_threads")


def first_cause(body: Callable[[], object], cause: str) -> bool:
    """Whether the cause comes first in one of four runs: other programs can take the cores."""
    for _ in range(4):
        own = [name for name in causes(diagnose(run(body))) if name != "cores_taken"]
        if own[:1] == [cause]:
            return True
    return False
