"""Advice says what to change where stacks tell what the work is, and only the place elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import LineCalls
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame
from tests import builders
from tests.work_values import GET, LIB, SITE, USER, Row, opened, profile, seen

DEEP = (GET, Frame("deepcopy", f"{LIB}/copy.py", 137), Frame("_deepcopy_dict", f"{LIB}/copy.py", 9))
ASK = (
    GET,
    Frame("DictProxy._callmethod", f"{LIB}/multiprocessing/managers.py", 822),
    Frame("Connection._recv", f"{LIB}/multiprocessing/connection.py", 395),
)
GLOB = (
    GET,
    Frame("glob", f"{LIB}/glob.py", 24),
    Frame("_iterdir", f"{LIB}/glob.py", 160),
)
EXISTS = (GET, Frame("exists", f"{LIB}/genericpath.py", 19))
TORCH = (
    GET,
    Frame("load", f"{SITE}/torch/serialization.py", 1300),
    Frame("_load", f"{SITE}/torch/serialization.py", 1800),
)
NUMBERS = (GET._replace(line=33),)


def first(value: Profile) -> Finding:
    return diagnose(value).findings[0]


def of_tensors(*rows: Row, workers: int = 0) -> Profile:
    """`profile` whose line 33 makes tensors."""
    value = profile(*rows, workers=workers)
    return replace(value, calls=(*value.calls, LineCalls("/me/data.py", 33, ("torch.tensor",))))


@pytest.mark.parametrize(
    ("row", "words"),
    [(DEEP, "copy only what is changed"), (ASK, "Manager"), (GLOB, "list the folder once"),
     (NUMBERS, "torch.from_numpy")],
    ids=["deep copies", "a manager", "listing", "tensors"],
)  # fmt: skip
@pytest.mark.parametrize("workers", [0, 2])
def test_known_work_is_told_how_to_be_cheaper(
    row: tuple[Frame, ...], words: str, workers: int
) -> None:
    advice = first(of_tensors((row, 80), (USER, 20), workers=workers)).advice
    assert words in advice
    assert "or do it once and keep the result" not in advice


def test_work_that_nothing_tells_is_named_by_its_place() -> None:
    advice = first(profile((USER, 90), (DEEP, 10), workers=2, batches=400)).advice
    assert "compute in /me/data.py, line 20 cheaper" in advice
    assert "copy" not in advice


def test_an_item_that_searches_its_folder_is_told_to_list_it_once() -> None:
    found = first(opened(profile((GLOB, 90), (USER, 10)), files=1500))
    assert found.cause == "many_small_files"
    assert found.title == "Every item searches a folder for its file"
    assert found.advice.startswith("List the folder once")
    looked = first(opened(profile((EXISTS, 90), (USER, 10)), files=1500))
    assert looked.title == "Every item is a small file of its own"
    assert "Pack the items" in looked.advice


def test_files_of_slices_are_told_to_hold_copies() -> None:
    value = opened(profile((TORCH, 90), (USER, 10), read_bytes=8_000_000), files=30, opens=20)
    found = first(value)
    assert found.cause == "read_amplification"
    assert ".clone()" in found.advice
    assert "npy_memory_map" not in found.toggles


@pytest.mark.parametrize("workers", [0, 2])
def test_a_manager_that_is_waited_for_serves_no_faster_whoever_asks(workers: int) -> None:
    states = {"cpu": 0.1, "process": 0.9}
    value = builders.profile(workers, states=states, batches=150, step_ms=0.5)
    role = "worker" if workers else "consumer"
    found = first(replace(value, stacks=seen((ASK, 90), (USER, 10), role=role)))
    assert found.resource == "process"
    assert "Manager" in found.advice
    assert "Start a program once" not in found.advice
    assert "num_workers" not in found.advice
    assert "workers" not in found.toggles
