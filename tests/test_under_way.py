"""While trials run: what is said, and what an interrupt does."""

from __future__ import annotations

import io
import signal

import pytest

from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.trials.progress import Progress
from jupyter_ioscope.under_way import UnderWay


@pytest.fixture
def line() -> ProgressLine:
    return ProgressLine(io.StringIO(), live=True)


def test_an_interrupt_ends_the_trials_once_a_pair_was_measured(line: ProgressLine) -> None:
    before = signal.getsignal(signal.SIGINT)
    with UnderWay(line) as under_way:
        under_way.on_progress(Progress("running", "pair 2, arm A", 0.2, pairs=1))
        signal.raise_signal(signal.SIGINT)
        assert under_way.cancel.is_set()
        with pytest.raises(KeyboardInterrupt):  # a second one is meant otherwise
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before


def test_an_interrupt_before_anything_was_measured_ends_the_command(line: ProgressLine) -> None:
    before = signal.getsignal(signal.SIGINT)
    with UnderWay(line) as under_way:
        under_way.on_progress(Progress("preparing", "pilot of arm A", 0.1))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not under_way.cancel.is_set()
    assert signal.getsignal(signal.SIGINT) == before


def test_the_line_says_what_is_under_way_and_goes_when_the_result_comes() -> None:
    stream = io.StringIO()
    with UnderWay(ProgressLine(stream, live=True)) as under_way:
        under_way.on_progress(Progress("preparing", "pilot of arm A", 0.1))
    assert stream.getvalue().startswith("\rpilot of arm A")
    assert stream.getvalue().endswith("\r")
