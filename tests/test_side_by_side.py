"""Two pytest processes, one summary: each test runs once and counts once, also after a crash."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.side_by_side import has_ended

pytestmark = [pytest.mark.timeout(240), pytest.mark.beside]

ROOT = Path(__file__).parent.parent
TUTORIALS = """
import os, pytest

class Cell(pytest.Item):
    def runtest(self):
        with open("log", "a") as log:
            log.write(f"cell {os.getpid()}\\n")

class Book(pytest.File):
    def collect(self):
        yield Cell.from_parent(self, name="Cell 0")

def pytest_collect_file(file_path, parent):
    return Book.from_parent(parent, path=file_path) if file_path.suffix == ".ipynb" else None
"""
TESTS = """
import os, pytest

def note(name):
    with open("log", "a") as log:
        log.write(f"{name} {os.getpid()}\\n")

@pytest.mark.timeout(60)
def test_process():
    note("process")

@pytest.mark.beside
@pytest.mark.timeout(60)
def test_beside():
    note("beside")

@pytest.mark.second
@pytest.mark.timeout(60)
def test_second():
    note("second")

def test_plain():
    note("plain")

def test_wrong():
    note("wrong")
    assert 1 == 2, "one is not two"

@pytest.mark.flaky(reruns=1)
def test_at_the_second_try(tries=[]):
    note("second try")
    tries.append(1)
    assert len(tries) == 2

@pytest.mark.browser
def test_page():
    note("page")

@pytest.mark.browser
@pytest.mark.beside
@pytest.mark.alone
def test_timed_page():
    note("timed page")

@pytest.mark.accuracy
def test_left_out():
    note("left out")

def test_crash(pytestconfig):
    if os.environ["CRASH"] and pytestconfig.getoption("--reports-to"):
        os._exit(9)
    note("crash")
"""
SETTINGS = f"""[pytest]
pythonpath = {ROOT}
markers =
    browser: drives a page
    alone: times a page
    beside: times nothing
    second: the same
    accuracy: left out
"""


def files(folder: Path, tests: str) -> dict[str, Any]:
    """A folder with one tutorial and these tests, and what to start pytest with."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "conftest.py").write_text(TUTORIALS)
    (folder / "book.ipynb").touch()
    (folder / "test_few.py").write_text(tests)
    plugins = ("tests.side_by_side", "pytest_timeout", "pytest_rerunfailures", "no:cacheprovider")
    options = ["-raR", "-m", "not accuracy", *(f"-p{name}" for name in plugins)]
    return {
        "args": [sys.executable, "-m", "pytest", *options, "book.ipynb", "test_few.py"],
        "cwd": folder,
        "env": {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CRASH": "",
        },
    }


@pytest.mark.parametrize("crash", ["", "yes"])
def test_each_test_counts_once_and_the_last_line_is_the_sum(tmp_path: Path, crash: str) -> None:
    given = files(tmp_path, TESTS)
    given["env"]["CRASH"] = crash
    done = subprocess.run(**given, capture_output=True, text=True, timeout=200)
    last = done.stdout.rstrip().splitlines()[-1]
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.match(r"=+ 1 failed, 9 passed, 1 deselected, 1 rerun in ", last), done.stdout
    assert "one is not two" in done.stdout
    assert "FAILED test_few.py::test_wrong" in done.stdout
    assert "RERUN test_few.py::test_at_the_second_try" in done.stdout
    assert ("exit code 9: 2 to run here" in done.stdout) == bool(crash)

    ran = [line.rsplit(" ", 1) for line in (tmp_path / "log").read_text().splitlines()]
    order = [name for name, _ in ran]
    where = dict(ran)
    processes = ["process", "beside", "second", "crash"]
    expected = [*processes, "cell", "plain", "wrong", "page", "timed page"]
    assert sorted(order) == sorted([*expected, "second try", "second try"])
    first, second = where["process"], where["plain"]
    assert first != second
    assert where["cell"] == where["beside"] == where["timed page"] == first
    assert where["wrong"] == where["second try"] == where["second"] == second
    assert where["page"] == where["crash"] == (first if crash else second)
    # what times processes has nothing beside it
    assert order.index("process") > max(map(order.index, ("cell", "beside", "second", "wrong")))
    assert crash or order[-2:] == ["process", "timed page"]


def test_interrupted_it_takes_the_second_along(tmp_path: Path) -> None:
    written = tmp_path / "process"
    given = files(
        tmp_path,
        f"""
import os, pathlib, time

def test_long():
    pathlib.Path({str(written)!r}).write_text(f"{{os.getpid()}}\\n")
    time.sleep(200)
""",
    )
    with subprocess.Popen(**given, stdout=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 100
            while not (written.exists() and written.read_text().endswith("\n")):
                assert time.monotonic() < until
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(100) == pytest.ExitCode.INTERRUPTED
            with pytest.raises(ProcessLookupError):
                os.kill(int(written.read_text()), 0)
        finally:
            process.kill()


def test_a_try_before_the_second_one_is_not_the_end() -> None:
    def report(when: Any, outcome: Any) -> pytest.TestReport:
        location = ("test_few.py", 1, "test")
        return pytest.TestReport("test_few.py::test", location, {}, outcome, None, when)

    assert has_ended(report("teardown", "passed"))
    assert has_ended(report("teardown", "failed"))
    assert not has_ended(report("teardown", "rerun"))
    assert not has_ended(report("call", "failed"))
