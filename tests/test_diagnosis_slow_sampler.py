"""What a sampler takes for every batch is told from the hand-over, and from a slow start."""

from __future__ import annotations

import dataclasses

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame
from tests import builders
from tests.seen_stacks import CELL, ITER, NEXT, STEP, library, with_stacks
from tests.simulator import MS

LOADER = "torch/utils/data/dataloader.py"
ASK = library("_BaseDataLoaderIter._next_index", LOADER, 715)
TRY_GET = library("_MultiProcessingDataLoaderIter._try_get_data", LOADER, 1291)
GET = library("Queue.get", "multiprocessing/queues.py", 122)
POLL = library("Connection.poll", "multiprocessing/connection.py", 257)
REBUILD = library("rebuild_storage_fd", "torch/multiprocessing/reductions.py", 538)
RESET = library("_MultiProcessingDataLoaderIter._reset", LOADER, 1276)
OWN = Frame("Hard.__iter__", "/me/data.py", 30)


def seen(value: Profile, *, asking: int, taking: int, starting: int = 0) -> Profile:
    """`value` whose consumer was seen so often asking a sampler and taking batches over."""
    rows = [
        ("consumer", -1, (CELL, NEXT, ASK, OWN), asking),
        ("consumer", -1, (CELL, NEXT, TRY_GET, GET, REBUILD), taking),
        ("consumer", -1, (CELL, NEXT, TRY_GET, GET, POLL), 40),
        ("consumer", -1, (CELL, ITER, RESET, ASK, OWN), starting),
        ("consumer", -1, (STEP,), 10),
    ]
    return with_stacks(value, [row for row in rows if row[3]])


def with_workers() -> Profile:
    return builders.profile(2, fetch_ms=1, main_ms=20, step_ms=1, batches=150, tensors=1)


def alone(each_ms: int) -> Profile:
    """A loop without workers in which something takes `each_ms` before every fetch."""
    value = builders.profile(0, fetch_ms=2, step_ms=1, batches=150)
    late = [each_ms * MS * (at + 1) for at in range(len(value.batches))]
    fetches = [
        row._replace(start_ns=row.start_ns + ns, end_ns=row.end_ns + ns)
        for row, ns in zip(value.fetches, late, strict=True)
    ]
    batches = [
        row._replace(
            wait_start_ns=row.wait_start_ns + ns - each_ms * MS,
            wait_end_ns=row.wait_end_ns + ns,
            step_end_ns=row.step_end_ns + ns,
            wait_cpu_ns=row.wait_cpu_ns + each_ms * MS,
        )
        for row, ns in zip(value.batches, late, strict=True)
    ]
    return dataclasses.replace(
        value,
        fetches=tuple(fetches),
        batches=tuple(batches),
        end_ns=value.end_ns + late[-1],
        epochs=tuple(row._replace(end_ns=batches[-1].step_end_ns) for row in value.epochs),
    )


def of_resource(value: Profile, resource: str) -> list[Finding]:
    return [row for row in diagnose(value).findings if row.resource == resource]


def test_a_sampler_that_computes_for_every_batch_comes_before_the_hand_over() -> None:
    first = diagnose(seen(with_workers(), asking=80, taking=20)).findings[0]
    assert (first.cause, first.resource) == ("first_batch_setup", "main_cpu")
    assert 0.6 < first.share < 0.9
    assert "longer than making it" in first.title
    assert "Hard.__iter__ in /me/data.py, line 30" in first.advice
    assert "num_workers=0" not in first.advice


def test_hand_over_is_what_is_left_of_it() -> None:
    plain = of_resource(seen(with_workers(), asking=0, taking=100), "hand_over")
    beside = of_resource(seen(with_workers(), asking=60, taking=40), "hand_over")
    assert plain[0].share > 0.7
    assert beside[0].share < 0.6 * plain[0].share


def test_a_sampler_is_named_where_the_loop_makes_its_batches_itself() -> None:
    value = seen(alone(each_ms=8), asking=90, taking=4)
    first = diagnose(value).findings[0]
    assert (first.cause, first.resource) == ("first_batch_setup", "main_cpu")
    assert "making it takes 2" in first.evidence[0]


def test_an_ordinary_sampler_is_no_trouble() -> None:
    for value in (
        seen(with_workers(), asking=5, taking=95),
        seen(with_workers(), asking=9, taking=191),
        seen(with_workers(), asking=0, taking=50, starting=50),
    ):
        assert not of_resource(value, "main_cpu")


def test_an_order_drawn_once_is_a_slow_start_and_nothing_else() -> None:
    value = alone(each_ms=0)
    first_ns = 2_000 * MS
    first, *later = value.batches
    late = [
        row._replace(
            wait_start_ns=row.wait_start_ns + first_ns,
            wait_end_ns=row.wait_end_ns + first_ns,
            step_end_ns=row.step_end_ns + first_ns,
        )
        for row in later
    ]
    slow = first._replace(
        wait_end_ns=first.wait_end_ns + first_ns,
        step_end_ns=first.step_end_ns + first_ns,
        wait_cpu_ns=first.wait_cpu_ns + first_ns,
    )
    value = dataclasses.replace(
        value,
        batches=(slow, *late),
        fetches=tuple(
            row._replace(start_ns=row.start_ns + first_ns, end_ns=row.end_ns + first_ns)
            for row in value.fetches
        ),
        end_ns=value.end_ns + first_ns,
        epochs=tuple(row._replace(end_ns=late[-1].step_end_ns) for row in value.epochs),
    )
    found = diagnose(seen(value, asking=50, taking=1)).findings
    named = [row.resource for row in found if row.cause == "first_batch_setup"]
    assert named == ["start_up"]
