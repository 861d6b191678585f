"""An interrupt neither tears a recording in two nor gets lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.capture.interrupts import held_interrupts
from jupyter_ioscope.capture.profiler import Profiler, recording
from jupyter_ioscope.errors import InputError
from tests import leftovers


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A shell starts what runs in its background with interrupts ignored, which is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    done: list[bool] = []

    def body() -> None:
        with held_interrupts() as held:
            interrupt()
            interrupt()
            done.append(held.interrupted)

    with pytest.raises(KeyboardInterrupt):
        body()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_forgotten_interrupt_reaches_nobody() -> None:
    with held_interrupts() as held:
        interrupt()
        held.forget()


def test_the_users_own_handler_gets_the_interrupt_and_stays() -> None:
    calls: list[int] = []

    def handler(number: int, _: Any) -> None:
        calls.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with held_interrupts(), held_interrupts():
            interrupt()
            assert calls == []
        assert calls == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def a_child_ended(_number: int, _: Any) -> None:
    raise RuntimeError("a worker was killed")


@pytest.fixture
def raises_at_a_childs_end() -> Iterator[None]:
    """As torch does once it has started workers."""
    before = signal.signal(signal.SIGCHLD, a_child_ended)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("raises_at_a_childs_end")
def test_what_a_childs_end_raises_waits_too() -> None:
    done: list[bool] = []

    def body() -> None:
        with held_interrupts() as held:
            os.kill(os.getpid(), signal.SIGCHLD)
            done.append(held.interrupted)

    with pytest.raises(RuntimeError, match="was killed"):
        body()
    assert done == [False]
    assert signal.getsignal(signal.SIGCHLD) is a_child_ended


@pytest.mark.usefixtures("raises_at_a_childs_end")
def test_a_childs_end_takes_no_exceptions_place() -> None:
    def body() -> None:
        with held_interrupts() as held:
            held.error_told = True
            os.kill(os.getpid(), signal.SIGCHLD)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        body()


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("raises_at_a_childs_end")
def test_a_childs_end_while_a_recording_ends_keeps_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = Profiler._halt

    def first_a_child(profiler: Profiler) -> None:
        os.kill(os.getpid(), signal.SIGCHLD)
        original(profiler)

    monkeypatch.setattr(Profiler, "_halt", first_a_child)
    p = api.profile(stacks=False)
    with pytest.raises(ValueError, match="mine"), p:
        raise ValueError("mine")
    assert p.profile.ended_by == "ValueError"
    assert not recording()


def test_an_exception_in_the_block_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="mine"), held_interrupts():
        raise ValueError("mine")


def test_other_threads_hold_nothing() -> None:
    failed: list[BaseException] = []

    def body() -> None:
        try:
            with held_interrupts():
                pass
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(10)
    assert failed == []


def interrupted_in(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(Profiler, method)

    def first_interrupted(*arguments: Any, **keywords: Any) -> Any:
        interrupt()
        return original(*arguments, **keywords)

    monkeypatch.setattr(Profiler, method, first_interrupted)


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("own_temporary_folder")
def test_an_interrupt_while_a_recording_starts_ends_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with api.profile(stacks=False):  # the helper stays for the life of the process
        pass
    interrupted_in("_start", monkeypatch)
    ran = False
    with leftovers.nothing_left_behind():
        with pytest.raises(KeyboardInterrupt), api.profile(stacks=False):
            ran = True
        assert not ran
        assert not recording()


@pytest.mark.timeout(240)
def test_an_interrupt_while_a_recording_ends_keeps_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupted_in("_halt", monkeypatch)
    p = api.profile(stacks=False)
    with pytest.raises(KeyboardInterrupt), p:
        pass
    assert p.profile.wall_s >= 0
    assert p.profile.tier != "in_process"
    assert not recording()


@pytest.mark.timeout(240)
def test_an_interrupt_just_before_a_recording_ends_does_not_leave_it_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came: list[bool] = []

    def too_early() -> Any:
        if not came:
            came.append(True)
            raise KeyboardInterrupt
        return held_interrupts()

    p = api.profile(stacks=False)
    p.start()
    monkeypatch.setattr("jupyter_ioscope.recording.held_interrupts", too_early)
    with pytest.raises(KeyboardInterrupt):
        p.stop()
    assert came
    assert p.profile.wall_s >= 0
    assert not recording()
    with pytest.raises(InputError, match="nothing is being recorded"):
        p.stop()
