"""pytest plug-in: two pytest processes at the same time, one summary (`-p tests.side_by_side`).

Tutorials mostly wait for what they time. Tests of pages, and those without processes of their own,
take a core but time nothing. So a second pytest runs the latter while this one runs the tutorials.
Tests of processes that hold with others beside them are shared out: the mark `beside` gives them
to this one, `second` to the other, so that both end at about the same time. The second's reports
are told here through pytest's own hooks, so that dots, failures, counts and exit code are those of
all tests. What times real processes comes afterwards, with nothing beside it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

_OPTION = "--reports-to"
_TAIL = 3000  # characters of what the second pytest said, where it ended before its time
_PATIENCE_S = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, metavar="FILE", help="what the second pytest is started with")


def pytest_configure(config: pytest.Config) -> None:
    reports = config.getoption(_OPTION)
    part = Second(config, Path(reports)) if reports else First(config)
    config.pluginmanager.register(part, "side by side")


def is_tutorial(item: pytest.Item) -> bool:
    return item.path.suffix == ".ipynb"


def on_a_page(item: pytest.Item) -> bool:
    return item.get_closest_marker("browser") is not None


def is_for_second(item: pytest.Item) -> bool:
    """Tests of pages wait for what they expect; those without processes have no `timeout`."""
    if is_tutorial(item) or item.get_closest_marker("alone"):
        return False
    marked = item.get_closest_marker("second") is not None
    return on_a_page(item) or marked or item.get_closest_marker("timeout") is None


def is_last(item: pytest.Item) -> bool:
    """What times, or looks at, processes: nothing may run beside it."""
    if item.get_closest_marker("alone"):  # also in a file that is marked
        return True
    return not (is_tutorial(item) or item.get_closest_marker("beside"))


class Second:
    """Runs its part, and writes a line of JSON for each report."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._file = path.open("w", encoding="utf-8")

    @pytest.hookimpl(trylast=True)  # after -m has deselected
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Pages last: a browser takes both cores now and then, and later tutorials wait more.
        items[:] = sorted(filter(is_for_second, items), key=on_a_page)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        kept = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._file.write(json.dumps(kept, default=str) + "\n")
        self._file.flush()

    def pytest_unconfigure(self) -> None:
        self._file.close()


class First:
    """Runs the tutorials and what is marked, tells the second's reports, and runs the rest."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = tempfile.TemporaryDirectory(prefix="side-by-side-")
        self._reports, self._said = (Path(self._folder.name, name) for name in ("reports", "said"))
        self._second: subprocess.Popen[bytes] | None = None
        self._given: list[pytest.Item] = []

    def pytest_sessionstart(self) -> None:
        """The second collects while this one does."""
        self._reports.touch()
        words = [*self._config.invocation_params.args, f"{_OPTION}={self._reports}"]
        with self._said.open("wb") as said:
            self._second = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
                cwd=self._config.invocation_params.dir,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._given = list(filter(is_for_second, items))
        mine = [item for item in items if not is_for_second(item)]
        items[:] = sorted(mine, key=is_last)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        session.testscollected += len(self._given)  # what percentages are of
        if all(map(is_last, session.items)):
            self._join(session)
        return (yield)

    # Outermost: a test's time begins to count within.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        result = yield
        if not is_last(item) and (nextitem is None or is_last(nextitem)):
            self._join(item.session)
        return result

    def _join(self, session: pytest.Session) -> None:
        """Wait for the second, tell its reports, and take over what it did not finish."""
        assert self._second is not None
        code = self._second.wait()
        told = self._tell()
        left = [item for item in self._given if item.nodeid not in told]
        if left:
            writer = self._config.get_terminal_writer()
            writer.line(f"\nThe second pytest ended with exit code {code}: {len(left)} to run here")
            writer.line(self._said.read_text(errors="replace")[-_TAIL:])
        session.items.extend(left)

    def _tell(self) -> set[str]:
        """Tell the reports of all tests that came to their end, and name these."""
        hook = self._config.hook
        reports: dict[str, list[pytest.TestReport]] = {}
        for line in self._reports.read_text(encoding="utf-8").split("\n")[:-1]:  # whole lines
            kept = json.loads(line)
            report = hook.pytest_report_from_serializable(config=self._config, data=kept)
            reports.setdefault(report.nodeid, []).append(report)
        ended = {name: rows for name, rows in reports.items() if has_ended(rows[-1])}
        for name, rows in ended.items():
            hook.pytest_runtest_logstart(nodeid=name, location=rows[0].location)
            for report in rows:
                hook.pytest_runtest_logreport(report=report)
            hook.pytest_runtest_logfinish(nodeid=name, location=rows[0].location)
        return set(ended)

    def pytest_unconfigure(self) -> None:
        """Where this one was interrupted, or could not collect, the second ends, too."""
        for stop in (None, signal.SIGINT, signal.SIGKILL):
            if self._second is None or self._second.poll() is not None:
                break
            if stop is not None:
                self._second.send_signal(stop)
            try:
                self._second.wait(_PATIENCE_S if stop else 1)
            except subprocess.TimeoutExpired:
                continue
        self._folder.cleanup()


def has_ended(last: pytest.TestReport) -> bool:
    """Whether a test's last report is its end, and not that of a try before the second one."""
    outcome: str = last.outcome  # "rerun" is pytest-rerunfailures' own
    return last.when == "teardown" and outcome != "rerun"
