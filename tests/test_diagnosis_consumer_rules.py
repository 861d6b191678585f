"""What the step is made of: saving, logging, plotting, the collector - or simply computing."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.steps import stalls_of, step_time
from jupyter_ioscope.model.diagnosis import Diagnosis, Finding
from jupyter_ioscope.model.observed import GcPause, LineCalls
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Series
from tests import builders
from tests.seen_stacks import CELL, NEXT, STEP, library, samples, with_stacks, with_states

MS = 1_000_000
SAVE = library("save", "torch/serialization.py", 1003)
USER = Frame("step", "In [5]", 9, 5)


def causes(diagnosis: Diagnosis) -> list[str]:
    return [row.cause for row in diagnosis.findings]


def named(diagnosis: Diagnosis, cause: str) -> Finding:
    return next(row for row in diagnosis.findings if row.cause == cause)


def stretched(value: Profile, every: int, extra_ms: int) -> Profile:
    """`value` with every n-th step longer: all that follows is later."""
    late, batches = 0, []
    for at, row in enumerate(value.batches):
        more = extra_ms * MS if at % every == every - 1 else 0
        batches.append(
            row._replace(
                wait_start_ns=row.wait_start_ns + late,
                wait_end_ns=row.wait_end_ns + late,
                step_end_ns=row.step_end_ns + late + more,
            )
        )
        late += more
    fetches = []
    for row, fetch in zip(batches, value.fetches, strict=True):
        fetches.append(
            fetch._replace(start_ns=row.wait_start_ns, end_ns=row.wait_start_ns + fetch.fetch_ns)
        )
    epochs = tuple(epoch._replace(end_ns=batches[-1].step_end_ns) for epoch in value.epochs)
    threads = tuple(
        dataclasses.replace(
            row,
            last_ns=row.last_ns + late,
            sample_ns=tuple(range(row.first_ns, row.last_ns + late, 40 * MS)),
            states=(9,) * len(range(row.first_ns, row.last_ns + late, 40 * MS)),
        )
        for row in value.threads
    )
    return dataclasses.replace(
        value,
        end_ns=value.end_ns + late,
        batches=tuple(batches),
        fetches=tuple(fetches),
        epochs=epochs,
        threads=threads,
    )


def steps(value: Profile) -> list[tuple[int, int]]:
    return [(row.wait_end_ns, row.step_end_ns) for row in value.batches]


def wrote(value: Profile, written: float) -> Profile:
    series = Series(
        "tree_write_bytes", "bytes", "cumulative", "tree", (value.start_ns, value.end_ns),
        (0.0, written),
    )  # fmt: skip
    return dataclasses.replace(
        value, series=MappingProxyType({**value.series, "tree_write_bytes": series})
    )


def computing(step_ms: float = 20.0, batches: int = 100) -> Profile:
    return builders.profile(0, fetch_ms=0.5, step_ms=step_ms, batches=batches)


def saving(extra_ms: int = 200, every: int = 10) -> Profile:
    """Every tenth step saves 80 MB and waits for the disk."""
    value = stretched(computing(), every, extra_ms)
    long = [span for span in steps(value) if span[1] - span[0] > 100 * MS]
    value = wrote(with_states(value, [(a + 20 * MS, b) for a, b in long], "disk"), 80e6 * len(long))
    return with_stacks(
        value,
        [
            ("consumer", -1, (CELL, NEXT), samples(value, 0.02)),
            ("consumer", -1, (STEP, USER), samples(value, 0.83)),
            ("consumer", -1, (STEP, USER, SAVE), samples(value, 0.15)),
        ],
    )


def test_saving_every_tenth_step_is_named_with_what_it_costs() -> None:
    diagnosis = diagnose(saving())
    found = named(diagnosis, "checkpoint_stall")
    assert diagnosis.findings[0] is found
    assert found.share == pytest.approx(0.49, abs=0.05)  # 200 ms of 10 x 20 + 200 + waits
    assert "10 of 100 steps, one in 10," in found.evidence[0]
    assert "background thread" in found.advice
    assert diagnosis.separated  # the step as a whole is no rival of its part


def test_a_save_now_and_then_leaves_the_step_the_limit() -> None:
    value = saving(extra_ms=100, every=100)
    assert causes(diagnose(value))[0] == "not_loader_bound"


def test_a_step_is_not_seen_in_the_imports_of_its_script() -> None:
    value = builders.profile(2, step_ms=50)
    imports = Frame("<module>", "/home/me/train.py", 1)
    loads = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1360)
    value = with_stacks(
        value,
        [("consumer", -1, [imports, loads], 900), ("consumer", -1, [CELL, USER], 100)],
    )
    evidence = " ".join(named(diagnose(value), "not_loader_bound").evidence)
    assert "seen mostly in step in In [5]" in evidence


def test_long_steps_without_a_trace_of_saving_are_no_checkpoint() -> None:
    value = stretched(computing(), 10, 200)
    value = with_stacks(value, [("consumer", -1, (STEP, USER), samples(value, 0.98))])
    assert causes(diagnose(value)) == ["not_loader_bound"]


def test_reading_files_in_the_step_is_no_checkpoint() -> None:
    value = computing()
    value = with_states(value, [(a, a + 15 * MS) for a, _ in steps(value)], "disk")
    value = wrote(value, 0.0)
    series = Series(
        "tree_read_bytes", "bytes", "cumulative", "tree", (value.start_ns, value.end_ns), (0.0, 1e9)
    )
    value = dataclasses.replace(
        value, series=MappingProxyType({**value.series, "tree_read_bytes": series})
    )
    value = with_stacks(value, [("consumer", -1, (STEP, USER), samples(value, 0.98))])
    assert causes(diagnose(value)) == ["not_loader_bound"]


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        (library("Logger.info", "logging/__init__.py"), "logs"),
        (library("dumps", "json/__init__.py"), "writes text"),
        (library("Figure.savefig", "matplotlib/figure.py"), "plots"),
        (library("OutStream.write", "ipykernel/iostream.py"), "prints"),
        (library("SummaryWriter.add_histogram", "torch/utils/tensorboard/writer.py"), "logs"),
        (library("Image.save", "PIL/Image.py"), "writes pictures or sound"),
        (library("histogram", "numpy/lib/_histograms_impl.py"), "counts values into histograms"),
    ],
)
def test_a_step_that_mostly_reports_is_overhead(frame: Frame, word: str) -> None:
    value = computing()
    value = with_stacks(
        value,
        [
            ("consumer", -1, (STEP, USER), samples(value, 0.2)),
            ("consumer", -1, (STEP, USER, frame), samples(value, 0.78)),
        ],
    )
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "step_overhead"
    assert f"The step {word} more than it computes" == diagnosis.findings[0].title
    assert diagnosis.headline.startswith(diagnosis.findings[0].title)


def test_a_step_that_logs_a_little_and_computes_much_is_only_the_limit() -> None:
    value = computing()
    frame = library("Logger.info", "logging/__init__.py")
    value = with_stacks(
        value,
        [
            ("consumer", -1, (STEP, USER), samples(value, 0.9)),
            ("consumer", -1, (STEP, USER, frame), samples(value, 0.08)),
        ],
    )
    diagnosis = diagnose(value)
    assert causes(diagnosis) == ["not_loader_bound"]
    said = " ".join(diagnosis.findings[0].evidence).replace("\xa0", " ")
    assert "Of the step, 8.2 % logging." in said


def test_loading_json_for_a_fetch_is_not_the_steps_overhead() -> None:
    value = builders.profile(0, fetch_ms=20, step_ms=1)
    fetch = library("fetch", "torch/utils/data/_utils/fetch.py")
    dumps = library("dumps", "json/__init__.py")
    value = with_stacks(value, [("consumer", -1, (CELL, NEXT, fetch, dumps), samples(value, 0.95))])
    assert "step_overhead" not in causes(diagnose(value))


def test_users_functions_named_like_a_loggers_do_not_count() -> None:
    value = computing()
    mine = Frame("info", "/home/me/project/logging/__init__.py", 3)
    value = with_stacks(value, [("consumer", -1, (STEP, mine), samples(value, 0.98))])
    assert causes(diagnose(value)) == ["not_loader_bound"]


def test_a_line_that_calls_fsync_counts_as_waiting_for_the_disk() -> None:
    line = Frame("step", "In [5]", 12, 5)
    value = computing()
    value = dataclasses.replace(
        with_stacks(
            value,
            [
                ("consumer", -1, (STEP, USER), samples(value, 0.2)),
                ("consumer", -1, (STEP, line), samples(value, 0.78)),
            ],
        ),
        calls=(LineCalls("In [5]", 12, ("os.fsync", ".fileno")),),
    )
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "step_overhead"
    assert "fsync" in diagnosis.findings[0].advice
    beside = dataclasses.replace(
        value, calls=(LineCalls("In [5]", 12, ("os.fsync", "torch.matmul")),)
    )
    assert causes(diagnose(beside)) == ["not_loader_bound"]  # either of them may be what takes long


def pauses(value: Profile, part: float, worker: int = -1) -> Profile:
    """`value` with a collection in each step (or fetch of a worker) that takes a part of it."""
    spans = (
        [(value.pid, a, b) for a, b in steps(value)]
        if worker < 0
        else [(r.pid, r.start_ns, r.end_ns) for r in value.fetches if r.worker == worker]
    )
    rows = tuple(GcPause(pid, worker, a, a + int((b - a) * part), 2, 0) for pid, a, b in spans)
    return dataclasses.replace(value, gc_pauses=value.gc_pauses + rows)


def test_pauses_of_the_collector_in_the_step_are_named_first() -> None:
    diagnosis = diagnose(pauses(computing(), 0.4))
    assert causes(diagnosis)[0] == "gc_pauses"
    assert diagnosis.findings[0].share == pytest.approx(0.39, abs=0.03)
    assert "gc.freeze()" in diagnosis.findings[0].advice


def test_short_pauses_are_noise() -> None:
    assert causes(diagnose(pauses(computing(), 0.03))) == ["not_loader_bound"]


def test_pauses_in_workers_count_by_what_they_hold_up() -> None:
    value = builders.profile(2, fetch_ms=20, cpu_fraction=1.0, step_ms=0.5)
    for worker in (0, 1):
        value = pauses(value, 0.6, worker)
    diagnosis = diagnose(value)
    found = named(diagnosis, "gc_pauses")
    assert found.resource == "worker_cpu"
    assert found.share == pytest.approx(0.58, abs=0.06)
    assert diagnosis.findings[0] is found


def test_collections_that_the_code_asks_for_are_told_by_their_line() -> None:
    value = builders.profile(0, fetch_ms=20, cpu_fraction=1.0, step_ms=0.5)
    spans = [(row.pid, row.start_ns, row.end_ns) for row in value.fetches]
    rows = tuple(GcPause(pid, -1, a, a + (b - a) // 2, 2, 0) for pid, a, b in spans)
    asked = (LineCalls("In [4]", 12, ("gc.collect",)),)
    stacks = value.stacks
    assert stacks is not None
    ending = tuple(
        row._replace(frames=row.frames[:-1]) if len(row.frames) == 5 else row
        for row in stacks.stacks
    )
    stacks = dataclasses.replace(stacks, stacks=ending)
    value = dataclasses.replace(value, gc_pauses=rows, calls=asked, stacks=stacks)
    found = named(diagnose(value), "gc_pauses")
    assert "gc.collect() is called in decode in In [4], line 12." in found.evidence
    assert found.advice.startswith("Take the gc.collect() out of decode")
    by_itself = named(diagnose(dataclasses.replace(value, calls=())), "gc_pauses")
    assert "is called" not in " ".join(by_itself.evidence)


def test_pauses_while_the_loop_waits_for_workers_cost_nothing() -> None:
    value = builders.profile(2, fetch_ms=40, cpu_fraction=1.0, step_ms=0.5)
    rows = tuple(
        GcPause(value.pid, -1, b.wait_start_ns, b.wait_end_ns, 2, 0) for b in value.batches
    )
    assert "gc_pauses" not in causes(diagnose(dataclasses.replace(value, gc_pauses=rows)))


def test_stalls_stand_out_against_the_usual_step() -> None:
    value = stretched(computing(batches=60), 10, 200)
    stalls = stalls_of(value.batches)
    assert (stalls.steps, stalls.every) == (6, 10)
    assert stalls.excess_ns == pytest.approx(6 * 200 * MS, rel=0.05)
    assert stalls_of(computing().batches).steps == 0
    assert stalls_of(()).excess_ns == 0


def test_a_step_without_samples_has_no_parts() -> None:
    value = builders.profile(0, step_ms=20, tier="in_process")
    assert step_time(value, value.batches).kinds == {}
    assert causes(diagnose(value))  # and the other rules still speak


@pytest.mark.timeout(240)
def test_a_real_loop_that_syncs_and_one_that_logs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler

    state = {"w": torch.zeros(3_000_000)}
    log, handler = logging.Logger("steps"), logging.FileHandler(tmp_path / "steps.log")
    log.addHandler(handler)

    def save(number: int) -> None:
        time.sleep(0.01)
        if number % 4 == 0:
            with open(tmp_path / "state.pt", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())

    def report(number: int) -> None:
        for value in range(500):
            log.info("step %d, value %f", number, value / 7)

    def first_causes(step: Callable[[int], None]) -> list[str]:
        profiler = Profiler(CaptureOptions(label="step"))
        profiler.start()
        try:
            loader = torch.utils.data.DataLoader(torch.arange(600), batch_size=8)
            for number, _ in enumerate(loader):
                step(number)
        finally:
            profile = profiler.stop()
        return [cause for cause in causes(diagnose(profile)) if cause != "cores_taken"][:2]

    # In one of four runs: other programs can take the cores away for the seconds of a run.
    assert any("checkpoint_stall" in first_causes(save) for _ in range(4))
    assert any(first_causes(report)[:1] == ["step_overhead"] for _ in range(4))
    handler.close()
