"""What tests of several areas share."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator

import pytest

# Marks of tests that start processes: a limit of their own, or a browser.
_REAL = ("timeout", "browser")


def pytest_configure() -> None:
    """What a shell starts in the background may have interrupts ignored, and so would everything
    that tests start. Several tests send them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A second try for tests of real processes and browsers: where other programs take the cores
    for a second, what such a test times is not there to be seen. The summary names each rerun."""
    for item in items:
        if isinstance(item, pytest.Function) and any(map(item.get_closest_marker, _REAL)):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(autouse=True)
def no_code_of_toggles_stays() -> Iterator[None]:
    """Modules that a test made of a toggle's code hold its loader, and with it mapped files."""
    yield
    checks = sys.modules.get("tests.toggle_checks")
    if checks is not None:
        checks.forget_code()


@pytest.fixture
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So that files of other programs are not taken for ours. Short: sockets lie in it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of a fifth of a second instead of one and a half. A clear effect is then decided
    after four pairs within seconds, and on a busy machine, whose trials differ more, the budget
    holds the dozens of pairs that the verdict may need. Of a slow arm fewer samples are looked at
    before: those of half a second, instead of three, but for one batch at least."""
    from jupyter_ioscope.trials import delivery, plan, session

    monkeypatch.setattr(session, "Limit", lambda: delivery.Limit(seconds=0.5))
    monkeypatch.setattr(session, "_CHECKS", 60)
    monkeypatch.setattr(plan, "_STRETCH_S", 0.2)
    monkeypatch.setattr(plan, "_PILOT_S", 0.2)
    monkeypatch.setattr(plan, "_BATCHES", 8)
