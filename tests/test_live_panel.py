"""The live panel's end in the kernel: it reads while a page looks on, and leaves nothing behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

import jupyter_ioscope as ioscope
from jupyter_ioscope import live_panel
from jupyter_ioscope.capture.live_gauges import LiveGauges, LiveReading
from jupyter_ioscope.live_panel import LivePanel
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.views.live_rows import live_rows
from tests.test_views_widget import FakeComm

pytestmark = pytest.mark.timeout(240)  # a thread of its own reads on a beat
KEYS = ["throughput", "wait", "cpu", "io_wait", "disk", "gpu", "memory"]


class Events:
    """The shell's events."""

    def __init__(self) -> None:
        self.callbacks: list[tuple[str, Callable[..., None]]] = []

    def register(self, name: str, callback: Callable[..., None]) -> None:
        self.callbacks.append((name, callback))

    def unregister(self, name: str, callback: Callable[..., None]) -> None:
        self.callbacks.remove((name, callback))

    def trigger(self, name: str) -> None:
        for one, callback in list(self.callbacks):
            if one == name:
                callback()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def panel(events: Events, monkeypatch: pytest.MonkeyPatch) -> Iterator[LivePanel]:
    monkeypatch.setattr(live_panel, "_PERIOD_S", 0.02)
    monkeypatch.setattr(live_panel, "_SHARE", 1.0)
    made = LivePanel(SimpleNamespace(events=events))
    yield made
    made.close()


def opened(panel: LivePanel) -> FakeComm:
    comm = FakeComm()
    panel.opened(comm, {})
    return comm


def until(true: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.01)


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "ioscope-live-panel"]


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_open_page_gets_rows_and_a_closed_one_costs_nothing(
    panel: LivePanel, events: Events
) -> None:
    before = files()
    comm = opened(panel)
    until(lambda: len(comm.sent) > 2, "no readings")
    rows = comm.sent[-1]["rows"]
    assert [row["key"] for row in rows] == KEYS
    assert all(row["text"] for row in rows)
    assert {row["key"]: row["value"] for row in rows}["memory"] > 1e6
    comm.page_leaves()
    until(lambda: not threads(), "the thread goes on")
    assert files() == before
    assert events.callbacks == []
    sent = len(comm.sent)
    time.sleep(0.1)
    assert len(comm.sent) == sent


def test_two_pages_share_one_thread(panel: LivePanel) -> None:
    one, other = opened(panel), opened(panel)
    until(lambda: bool(one.sent and other.sent), "no readings")
    assert len(threads()) == 1
    one.page_leaves()
    seen = len(other.sent)
    until(lambda: len(other.sent) > seen, "the other page was left too")


def test_a_page_that_opens_again_at_once_is_served(panel: LivePanel) -> None:
    for _ in range(5):
        opened(panel).page_leaves()
    comm = opened(panel)
    until(lambda: bool(comm.sent), "no readings")
    assert len(threads()) == 1


def test_a_page_that_vanished_is_dropped_but_not_while_a_cell_runs(
    panel: LivePanel, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    comm = opened(panel)
    until(lambda: bool(comm.sent), "no readings")
    events.trigger("pre_run_cell")
    monkeypatch.setattr(live_panel, "_SILENT_S", 0.05)
    time.sleep(0.1)
    assert not comm.closed
    comm.page_says({"cmd": "here"})
    monkeypatch.setattr(live_panel, "_SILENT_S", -1.0)
    events.trigger("post_run_cell")
    until(lambda: comm.closed and not threads(), "the page was kept")


def test_a_page_that_cannot_be_reached_ends_the_reading(panel: LivePanel) -> None:
    comm = opened(panel)
    comm.gone = True
    until(lambda: not threads(), "the thread goes on")


def test_what_fails_while_reading_is_logged_and_nothing_else(
    events: Events, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> LiveGauges:
        raise OSError("no /proc here")

    panel = LivePanel(SimpleNamespace(events=events), broken)
    comm = opened(panel)
    until(lambda: comm.closed and not threads(), "the page was not told")
    assert "no /proc here" in caplog.text
    panel.close()


def test_the_loop_is_shown_while_it_is_recorded() -> None:
    reading = LiveReading({"tree_cpu_ns": 1.5, "gpu0_busy_fraction": 0.25}, (), 2)
    rows = {row["key"]: row for row in live_rows(reading, (40, 12.5, 0.75))}
    assert rows["throughput"]["text"] == "12.5\u00a0batches/s"
    assert rows["wait"]["value"] == 0.75
    assert rows["wait"]["most"] == 1.0
    assert rows["cpu"]["text"] == "1.5 of 2 cores"
    assert rows["gpu0"]["text"] == "25\u00a0%"


def test_what_is_missing_says_why() -> None:
    reading = LiveReading({}, (Gap("GPU utilisation and memory", "NVML: no driver"),), 2)
    rows = {row["key"]: row for row in live_rows(reading, None)}
    assert rows["gpu"]["why"] == "NVML: no driver"
    assert "%%ioscope" in rows["throughput"]["why"]
    assert all(row["why"] for row in rows.values() if row["value"] is None)


def test_the_progress_is_that_of_the_running_profile() -> None:
    from jupyter_ioscope.capture.profiler import progress_now

    assert progress_now() is None
    with ioscope.profile(stacks=False):
        assert progress_now() == (0, 0.0, 0.0)
    assert progress_now() is None


def test_growth_is_read_per_second() -> None:
    gauges = LiveGauges()
    try:
        first = gauges.read()
        assert "tree_cpu_ns" not in first.values
        for _ in range(20):  # what is open is read when its turn comes
            ends_s = time.process_time() + 0.2
            while time.process_time() < ends_s:
                pass
            cores = gauges.read().values.get("tree_cpu_ns", 0.0)
            if cores:
                break
    finally:
        gauges.close()
    assert 0 < cores <= 2 * (os.cpu_count() or 1)
