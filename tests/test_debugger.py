"""Processes of our own are none of a debugger's, which would hold them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from jupyter_ioscope import debugger
from jupyter_ioscope.capture.helper_link import HelperLink
from jupyter_ioscope.trials.forker import Forker


class Monkey:
    """What is used of pydevd's module of that name."""

    def __init__(self) -> None:
        self.inside = False
        self.times = 0

    @contextmanager
    def skip_subprocess_arg_patch(self) -> Iterator[None]:
        self.inside = True
        self.times += 1
        yield
        self.inside = False


@pytest.fixture
def monkey(monkeypatch: pytest.MonkeyPatch) -> Monkey:
    made = Monkey()
    monkeypatch.setitem(sys.modules, "_pydev_bundle.pydev_monkey", made)
    return made


def test_a_debugger_is_asked_to_leave_alone_what_the_block_starts(monkey: Monkey) -> None:
    with debugger.undebugged():
        assert monkey.inside
    assert not monkey.inside


def test_without_one_or_with_one_of_another_kind_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "_pydev_bundle.pydev_monkey", raising=False)
    with debugger.undebugged():
        pass
    monkeypatch.setitem(sys.modules, "_pydev_bundle.pydev_monkey", SimpleNamespace())
    with debugger.undebugged():
        pass


def test_trials_are_started_so(monkey: Monkey) -> None:
    assert Forker().start(lambda: int(monkey.inside)).result(30) == 1


@pytest.mark.timeout(60)  # starts the helper
def test_the_helper_is_started_so(monkey: Monkey) -> None:
    link = HelperLink("/proc", "/sys")
    try:
        assert monkey.times == 1
        assert link.pid != os.getpid()
    finally:
        link.close()


def test_a_kernel_tells_whether_its_debugger_is_on() -> None:
    on = SimpleNamespace(kernel=SimpleNamespace(debugger=SimpleNamespace(is_started=True)))
    assert debugger.is_on(on)
    for shell in (None, SimpleNamespace(kernel=None), SimpleNamespace(kernel=SimpleNamespace())):
        assert not debugger.is_on(shell)
