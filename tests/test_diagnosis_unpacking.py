"""Whether a batch comes across as tensors or as pickled objects is seen where it is taken over."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.unpacking import Unpacking, unpacking
from jupyter_ioscope.model.profile import Profile
from tests import builders
from tests.seen_stacks import CELL, NEXT, library, with_stacks

GET = library("get", "multiprocessing/queues.py", 122)
POLL = library("poll", "multiprocessing/connection.py", 257)
REBUILD = library("rebuild_storage_fd", "torch/multiprocessing/reductions.py", 540)
DETACH = library("detach", "multiprocessing/resource_sharer.py", 57)


def carried(objects: int, tensors: int, waiting: int = 30, pieces: int = 160) -> Profile:
    """Batches of 160 objects that take long to take over; what the consumer was seen in below
    `Queue.get`."""
    value = builders.profile(
        2, fetch_ms=20, step_ms=1, main_ms=50, tensors=pieces, batch_bytes=500_000, batches=60
    )
    rows = [
        ("consumer", -1, (CELL, NEXT, GET), objects),
        ("consumer", -1, (CELL, NEXT, GET, REBUILD, DETACH), tensors),
        ("consumer", -1, (CELL, NEXT, GET, POLL), waiting),
        ("consumer", -1, (CELL, NEXT), 5),
    ]
    return with_stacks(value, [row for row in rows if row[3]])


def test_waiting_for_the_worker_is_no_unpacking() -> None:
    assert unpacking(carried(40, 9)) == Unpacking(40, 9)


@pytest.mark.parametrize(
    ("objects", "tensors", "cause"),
    [(60, 5, "ipc_python_objects"), (5, 60, "ipc_many_tensors"), (4, 0, "ipc_many_tensors")],
    ids=["objects", "tensors", "hardly seen"],
)
def test_the_cause_follows_what_was_seen(objects: int, tensors: int, cause: str) -> None:
    assert diagnose(carried(objects, tensors)).findings[0].cause == cause


def test_a_few_tensors_are_no_python_objects_however_long_they_take() -> None:
    value = carried(5, 60, pieces=9)
    slow = tuple(row._replace(end_ns=row.end_ns + 60_000_000) for row in value.fetches)
    assert "ipc_python_objects" not in [
        row.cause for row in diagnose(builders.without(value, fetches=slow)).findings
    ]
    assert "ipc_python_objects" not in [row.cause for row in diagnose(value).findings]


def test_stacks_from_inside_say_nothing_about_it() -> None:
    value = carried(60, 5)
    assert value.stacks is not None
    inside = dataclasses.replace(value.stacks, source="in-process")
    value = builders.without(value, stacks=inside)
    assert unpacking(value).samples == 0
    assert diagnose(value).findings[0].cause == "ipc_many_tensors"
