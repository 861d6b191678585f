"""Signals that end a command: it is tidied up first, and nothing of the handlers stays."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from jupyter_ioscope import cli
from jupyter_ioscope.ended_by_signal import Ended, tidied

pytestmark = pytest.mark.timeout(30)


@pytest.fixture(autouse=True)
def as_python_starts() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_signal_goes_the_way_of_an_interrupt_and_a_second_one_ends_at_once() -> None:
    seen = []

    def work() -> None:
        with tidied():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            finally:
                seen.append(signal.getsignal(signal.SIGTERM))

    with pytest.raises(Ended) as ended:
        work()
    assert seen == [signal.SIG_DFL]
    assert ended.value.code == 128 + signal.SIGTERM
    assert isinstance(ended.value, KeyboardInterrupt)


def test_handlers_are_as_before_afterwards() -> None:
    with tidied():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_signals_of_others_and_other_threads_are_left_alone() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with tidied():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    seen = []

    def enter() -> None:
        with tidied():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


def test_a_child_that_is_forked_meanwhile_ends_at_once() -> None:
    with tidied():
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_a_command_that_is_ended_says_so_and_a_recorded_script_keeps_its_own_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = []

    def end(_options: object) -> int:
        handlers.append(signal.getsignal(signal.SIGTERM))
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
        return 0

    def record(_options: object) -> int:
        handlers.append(signal.getsignal(signal.SIGTERM))
        return 0

    monkeypatch.setattr(cli, "_limits", end)
    monkeypatch.setattr(cli, "_record", record)
    assert cli.main(["limits"]) == 143
    assert "ended by a signal" in capsys.readouterr().err
    assert cli.main(["record", "script.py"]) == 0
    assert handlers[0] is not signal.SIG_DFL
    assert handlers[1] is signal.SIG_DFL
