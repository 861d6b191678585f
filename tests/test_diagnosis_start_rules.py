"""What the time before the first batch is made of, and workers that never begin."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.capture import frames as cutting
from jupyter_ioscope.capture.pyspy import RawFrame
from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.before import before_loop, first_fetch_extra_ns, starting
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.observed import BlockedStacks
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame
from jupyter_ioscope.model.records import Epoch, LoaderInfo
from tests import builders
from tests.seen_stacks import CELL, ITER, NEXT, STEP, Row, library, thread, with_stacks
from tests.simulator import MS, PID, START_NS, S

LAUNCH = library("Popen._launch", "multiprocessing/popen_spawn_posix.py", 62)
DUMP = library("dump", "multiprocessing/reduction.py", 60)
MAIN = library("_main", "multiprocessing/spawn.py", 132)
IMPORT = Frame("_find_and_load", "<frozen importlib._bootstrap>", 1176)
SAMPLER = library("WeightedRandomSampler.__iter__", "torch/utils/data/sampler.py", 277)
SETUP = Frame("<module>", "In [7]", 1, 7)


def causes(diagnosis: Diagnosis) -> list[str]:
    return [row.cause for row in diagnosis.findings]


def evidence(diagnosis: Diagnosis) -> str:
    return " ".join(diagnosis.findings[0].evidence).replace("\xa0", " ")


def spawned(start_ms: float, rows: list[Row], **settings: Any) -> Profile:
    """Two spawned workers that take so long to start; then a quick loop."""
    value = builders.profile(
        2, start_ms=start_ms, entry_ms=0, start_method="spawn", fetch_ms=10, step_ms=12,
        cpu_fraction=1.0, batches=60, **settings,
    )  # fmt: skip
    return with_stacks(value, rows)


def of_spawn(pickling: int, sending: int, unpacking: int, imports: int) -> list[Row]:
    return [
        ("consumer", -1, (CELL, ITER, LAUNCH, DUMP), pickling),
        ("consumer", -1, (CELL, ITER, LAUNCH), sending),
        ("worker", 0, (MAIN,), unpacking),
        ("worker", 0, (MAIN, IMPORT), imports),
        ("consumer", -1, (STEP,), 18),
    ]


def test_a_dataset_that_is_shipped_to_spawned_workers_is_named() -> None:
    value = spawned(8_000, [row for row in of_spawn(50, 150, 130, 20) if row[3]])
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "spawn_pickles_dataset"
    assert "first_batch_setup" not in causes(diagnosis)
    assert diagnosis.findings[0].share > 0.6
    assert "to pickle the dataset" in evidence(diagnosis)


def test_without_stacks_of_the_workers_the_time_of_sending_tells() -> None:
    """Pickling in C keeps the GIL, so that stacks from inside hardly show it."""
    sent = [row for row in of_spawn(2, 150, 0, 0) if row[3]]
    diagnosis = diagnose(spawned(8_000, sent))
    assert causes(diagnosis)[0] == "spawn_pickles_dataset"
    assert 0.25 < diagnosis.findings[0].share < 0.5  # the other worker would start meanwhile
    assert "until the workers have read it" in evidence(diagnosis)


def test_what_spawning_costs_without_a_large_dataset_is_no_finding() -> None:
    value = spawned(2_000, [row for row in of_spawn(0, 2, 1, 45) if row[3]])
    assert not {"spawn_pickles_dataset", "first_batch_setup"} & set(causes(diagnose(value)))


def test_forked_workers_are_sent_nothing() -> None:
    value = builders.profile(2, start_ms=4_000, fetch_ms=10, step_ms=12, batches=60)
    value = with_stacks(value, [("consumer", -1, (CELL, ITER), 100)])
    assert "spawn_pickles_dataset" not in causes(diagnose(value))


def test_without_stacks_the_rule_about_spawning_is_unknown() -> None:
    value = dataclasses.replace(spawned(8_000, []), stacks=None)
    diagnosis = diagnose(value)
    assert "spawn_dataset" in [row.rule for row in diagnosis.unknown]


def late_first_batch(value: Profile, late_ns: int, in_fetch: bool) -> Profile:
    """`value` whose first batch took longer: inside its fetch, or before it."""
    fetches = [
        row._replace(
            start_ns=row.start_ns + (0 if in_fetch and not at else late_ns),
            end_ns=row.end_ns + late_ns,
            cpu_ns=row.cpu_ns + (late_ns if in_fetch and not at else 0),
        )
        for at, row in enumerate(value.fetches)
    ]
    batches = [
        row._replace(
            wait_start_ns=row.wait_start_ns + (late_ns if at else 0),
            wait_end_ns=row.wait_end_ns + late_ns,
            step_end_ns=row.step_end_ns + late_ns,
            wait_cpu_ns=row.wait_cpu_ns + (0 if at else late_ns),
        )
        for at, row in enumerate(value.batches)
    ]
    return dataclasses.replace(
        value,
        fetches=tuple(fetches),
        batches=tuple(batches),
        end_ns=value.end_ns + late_ns,
        epochs=tuple(row._replace(end_ns=batches[-1].step_end_ns) for row in value.epochs),
    )


def test_a_slow_sampler_is_named_and_so_is_the_remedy() -> None:
    value = builders.profile(0, fetch_ms=2, step_ms=2, batches=100)
    value = late_first_batch(value, 3 * S, in_fetch=False)
    value = with_stacks(
        value,
        [("consumer", -1, (CELL, NEXT, SAMPLER), 70), ("consumer", -1, (STEP,), 5)],
    )
    assert starting(value).largest == kinds.SAMPLING
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "first_batch_setup"
    assert kinds.SAMPLING in evidence(diagnosis)
    assert "replacement" in diagnosis.findings[0].advice


def test_a_sampler_of_the_users_own_is_named_with_what_it_goes_through() -> None:
    value = builders.profile(0, fetch_ms=2, step_ms=2, batches=100)
    value = late_first_batch(value, 3 * S, in_fetch=False)
    ask = library("_BaseDataLoaderIter._next_index", "torch/utils/data/dataloader.py", 675)
    own = Frame("Buckets.__iter__", "/me/data.py", 30)
    length = Frame("Corpus.__getitem__", "/me/data.py", 12)
    value = with_stacks(
        value,
        [("consumer", -1, (CELL, NEXT, ask, own, length), 70), ("consumer", -1, (STEP,), 5)],
    )
    first = diagnose(value).findings[0]
    assert first.cause == "first_batch_setup"
    assert "in Corpus.__getitem__ in /me/data.py, line 12" in first.advice
    assert "keep it in an array" in first.advice


def test_a_first_fetch_that_opens_an_index_is_set_up() -> None:
    value = builders.profile(0, fetch_ms=4, step_ms=1, batches=100)
    late = 2 * S
    value = late_first_batch(value, late, in_fetch=True)
    assert first_fetch_extra_ns(value.fetches) == pytest.approx(late, rel=0.05)
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "first_batch_setup"
    assert diagnosis.findings[0].title.startswith("The first fetch")
    assert first_fetch_extra_ns(value.fetches[:3]) == 0  # too few to know the usual one


@pytest.mark.parametrize(
    ("stream", "told"),
    [("Skip < Mapped < Examples", True), ("Mapped < Skip < Examples", False)],
)
def test_a_stream_that_skips_rows_it_has_made_is_told_to_skip_first(
    stream: str, told: bool
) -> None:
    value = late_first_batch(builders.profile(0, fetch_ms=4, step_ms=1), 2 * S, in_fetch=True)
    facts = (("kind", "IterableDataset"), ("stream", stream))
    loaders = tuple(dataclasses.replace(row, facts=facts) for row in value.loaders)
    found = diagnose(builders.without(value, loaders=loaders)).findings[0]
    assert found.cause == "first_batch_setup"
    assert ("before map" in found.advice) == told


def before(rows: list[Row], before_ms: float = 4_000) -> Profile:
    value = builders.profile(0, before_ms=before_ms, fetch_ms=4, step_ms=8, batches=100)
    return with_stacks(value, [*rows, ("consumer", -1, (CELL, NEXT), 5)])


def test_a_scan_of_files_before_the_loop_is_named() -> None:
    walk = Frame("walk", "<frozen os>", 418)
    user = Frame("index", "In [3]", 4, 3)
    value = before([("consumer", -1, (SETUP, user, walk), 80), ("consumer", -1, (STEP, user), 25)])
    assert before_loop(value).places[0] == "index in In [3], line 4"
    diagnosis = diagnose(value)
    assert causes(diagnosis)[0] == "first_batch_setup"
    assert f"100 % of it was {kinds.SCANNING}" in evidence(diagnosis)


def test_imports_before_the_loop_are_no_finding() -> None:
    value = before([("consumer", -1, (SETUP, IMPORT), 95), ("consumer", -1, (STEP,), 25)])
    assert causes(diagnose(value)) == ["not_loader_bound"] or "first_batch_setup" not in causes(
        diagnose(value)
    )


def test_what_the_step_does_is_not_taken_for_what_came_before() -> None:
    walk = Frame("walk", "<frozen os>", 418)
    value = before([("consumer", -1, (SETUP,), 95), ("consumer", -1, (STEP, walk), 25)])
    assert kinds.SCANNING not in before_loop(value).kinds


def never_began(ended_by: str, method: str = "spawn", name: str = "CellDataset") -> Profile:
    loader = LoaderInfo(
        loader=0,
        library="torch",
        class_name="torch.utils.data.dataloader.DataLoader",
        dataset_class=name,
        dataset_kind="map",
        num_workers=2,
        batch_size=8,
        start_method=method,
    )
    worker = thread(0.3, {"running": 1.0}, run=1.0, tid=PID + 1, role="worker", pid=PID + 1)
    return builders.empty_profile(
        loaders=(loader,),
        epochs=(Epoch(0, 0, START_NS + 10 * MS, START_NS + 30 * MS, None),),
        threads=(dataclasses.replace(worker, worker=0),),
        ended_by=ended_by,
    )


def test_workers_that_cannot_import_the_class_are_named_though_no_batch_came() -> None:
    diagnosis = diagnose(never_began("RuntimeError"))
    assert causes(diagnosis) == ["not_importable_in_worker"]
    assert "CellDataset is defined in the notebook" in evidence(diagnosis)
    assert "%%writefile" in diagnosis.findings[0].advice
    assert diagnosis.headline.startswith("The loader gave no batch: workers end at once")


def test_a_dataset_that_cannot_be_pickled_is_named() -> None:
    value = dataclasses.replace(never_began("AttributeError"), threads=())
    assert diagnose(value).findings[0].title == "The dataset cannot be sent to the workers"


@pytest.mark.parametrize(
    "value",
    [
        never_began("RuntimeError", method="fork"),
        never_began("KeyboardInterrupt"),
        dataclasses.replace(never_began("RuntimeError"), ended_by=None),
        dataclasses.replace(builders.profile(2), ended_by="RuntimeError"),
    ],
    ids=["forked", "interrupted", "left early", "after batches"],
)
def test_loops_that_ended_for_other_reasons_are_not(value: Profile) -> None:
    assert "not_importable_in_worker" not in causes(diagnose(value))


def test_a_fork_servers_worker_keeps_its_stack_and_the_server_has_none() -> None:
    server = [
        RawFrame("<module>", "<string>", 1),
        RawFrame("main", "/usr/lib/python3.11/multiprocessing/forkserver.py", 274),
        RawFrame("_serve_one", "/usr/lib/python3.11/multiprocessing/forkserver.py", 313),
    ]
    unpack = RawFrame("_main", "/usr/lib/python3.11/multiprocessing/spawn.py", 132)
    loop = RawFrame("_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 300)
    assert cutting.of_worker(server, lambda _: False) == ()
    assert cutting.of_worker([*server, unpack], lambda _: False) == (unpack,)
    assert cutting.of_worker([*server, unpack, loop], lambda _: False) == (loop,)


@pytest.mark.timeout(300)
def test_a_class_of_the_main_module_under_spawn_really_is_found(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import sys

    from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler

    source = (
        "class Rows:\n    def __len__(self): return 8\n    def __getitem__(self, i): return i\n"
    )
    main = sys.modules["__main__"].__dict__
    exec(source, main)  # what running a notebook's cell does
    profiler = Profiler(CaptureOptions(label="spawn"))
    profiler.start()
    ended_by = None
    try:
        loader = torch.utils.data.DataLoader(
            main["Rows"](), num_workers=1, multiprocessing_context="spawn"
        )
        for _ in loader:
            pass
    except RuntimeError as error:
        ended_by = type(error).__name__
    finally:
        profile = profiler.stop(ended_by)
        main.pop("Rows")
    found = [cause for cause in causes(diagnose(profile)) if cause != "cores_taken"]
    assert found == ["not_importable_in_worker"]


@pytest.mark.parametrize(("running", "found"), [(1.0, True), (0.2, False)])
def test_without_a_sampler_fetches_tell_how_slow_a_start_has_to_be(
    running: float, found: bool
) -> None:
    """Workers that stand in line for a core four fifths of their time were slow to start, too."""
    made = builders.profile(
        2,
        tier="in_process",
        states={"cpu": running, "run_queue": 1 - running},
        start_ms=1_000,
        fetch_ms=20,
        step_ms=20,
        batches=120,
    )
    lost = tuple(row._replace(involuntary_switches=9) for row in made.fetches)
    seen = builders.without(made, fetches=lost, blocked=BlockedStacks(20.0, (), ()))
    assert ("first_batch_setup" in causes(diagnose(seen))) is found
