"""Children that the recorded code forks are not recorded, and end nothing of their parent's."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.profiler import recording  # noqa: E402
from jupyter_ioscope.errors import IoscopeError  # noqa: E402
from tests.loaders_under_test import Numbers  # noqa: E402

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


def loader(length: int) -> DataLoader[Any]:
    return DataLoader(Numbers(length), batch_size=4, num_workers=1, multiprocessing_context="fork")


def iterate(length: int) -> None:
    for _ in loader(length):
        pass


def test_workers_of_a_childs_loader_are_no_part_of_the_profile() -> None:
    with profile(stacks=False) as p:
        batches = iter(loader(24))
        next(batches)
        child = multiprocessing.get_context("fork").Process(target=iterate, args=(40,))
        child.start()
        rest = list(batches)
        child.join()
    assert child.exitcode == 0
    assert len(rest) == 5
    assert len(p.profile.workers) == 1
    assert [fetch.task for fetch in p.profile.fetches] == [0, 1, 2, 3, 4, 5]


def test_loops_of_children_only_leave_a_report_that_says_so() -> None:
    with profile(stacks=False) as p:
        child = multiprocessing.get_context("fork").Process(target=iterate, args=(8,))
        child.start()
        child.join()
    assert child.exitcode == 0
    assert (p.batches, p.profile.fetches, p.profile.workers) == ((), (), ())
    assert str(p)


def test_a_child_that_leaves_the_block_ends_nothing(tmp_path: Path) -> None:
    told = tmp_path / "told"
    p = profile(stacks=False)
    child = -1
    try:
        with p:
            iterate(8)
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        if child == 0:
            leave(p, told)
    assert (
        told.read_text() == "this is a copy in a child process: the recording is that of its parent"
    )
    assert len(p.batches) == len(p.profile.fetches) == 2
    assert p.profile.tier != "in_process"  # the helper still answered


def leave(p: Any, told: Path) -> None:
    """The end of the forked child."""
    code = 1
    try:
        assert not recording()
        try:
            p.profile  # noqa: B018
        except IoscopeError as error:
            told.write_text(str(error))
            code = 0
    finally:
        os._exit(code)
