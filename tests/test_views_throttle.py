"""At most four messages a second, the newest of each kind, the last one always."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from jupyter_ioscope.views.throttle import Throttle


class Log:
    """Remembers what was sent, when, and by how many threads at a time."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self.at_s: list[float] = []
        self.busy = 0
        self.most_busy = 0

    def __call__(self, state: dict[str, Any]) -> None:
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self.at_s.append(time.monotonic())
        self.states.append(state)
        self.busy -= 1


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ioscope-report"]


def test_the_first_goes_at_once_on_the_callers_thread() -> None:
    log = Log()
    Throttle(log).put(progress=1)
    assert log.states == [{"progress": 1}]


def test_a_burst_becomes_the_first_and_the_last() -> None:
    log = Log()
    throttle = Throttle(log)
    for i in range(1000):
        throttle.put(progress=i)
    throttle.close()
    assert log.states == [{"progress": 0}, {"progress": 999}]


def test_kinds_that_wait_travel_together_each_with_its_newest_value() -> None:
    log = Log()
    throttle = Throttle(log)
    throttle.put(progress=0)
    throttle.put(progress=1)
    throttle.put(comparisons=["a"])
    throttle.put(progress=2)
    throttle.close()
    assert log.states[1:] == [{"progress": 2, "comparisons": ["a"]}]


@pytest.mark.timeout(120)
def test_the_last_one_arrives_by_itself_and_leaves_no_thread() -> None:
    log = Log()
    throttle = Throttle(log, per_second=50)
    throttle.put(progress=0)
    throttle.put(progress=1)
    wait_until(lambda: len(log.states) == 2)
    assert log.states[-1] == {"progress": 1}
    wait_until(lambda: not own_threads())


@pytest.mark.timeout(120)
def test_many_threads_keep_the_rate_and_the_order() -> None:
    log = Log()
    throttle = Throttle(log, per_second=20)
    end_s = time.monotonic() + 0.5

    def talk() -> None:
        while time.monotonic() < end_s:
            throttle.put(progress=time.monotonic())
            time.sleep(0.001)

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    throttle.close()
    # `close` may send at once; all others keep their distance.
    gaps = [b - a for a, b in zip(log.at_s, log.at_s[1:-1], strict=False)]
    assert len(log.states) >= 3
    assert min(gaps) > 0.9 / 20
    assert log.most_busy == 1
    values = [state["progress"] for state in log.states]
    assert values == sorted(values)


def test_after_closing_nothing_goes_out() -> None:
    log = Log()
    throttle = Throttle(log)
    throttle.close()
    throttle.close()
    throttle.put(progress=1)
    assert log.states == []


def test_a_page_that_fails_does_not_fail_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: dict[str, Any]) -> None:
        raise ConnectionError("gone")

    throttle = Throttle(broken)
    throttle.put(progress=1)
    throttle.close()
    assert "lost" in caplog.text


def wait_until(done: Any) -> None:
    while not done():
        time.sleep(0.005)
