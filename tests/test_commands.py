"""`compare` and `tune` by name: in a notebook's line, on the command line, with the same words."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from torch.utils.data import DataLoader

from jupyter_ioscope import magics
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.recording import Recording
from tests.trial_loaders import Sleeping
from tests.view_values import profile

pytestmark = [pytest.mark.timeout(400), pytest.mark.beside]

MODULE = """
import time
import torch
from torch.utils.data import DataLoader, Dataset
from jupyter_ioscope.trials import plan, session

# as the fixture short_trials does
plan._STRETCH_S = plan._PILOT_S = 0.2
plan._BATCHES = 8
session._CHECKS = 60


class Waiting(Dataset):
    def __len__(self):
        return 1200

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.tensor(index)


def make():
    return DataLoader(Waiting(), batch_size=2)


faster = DataLoader(Waiting(), batch_size=2, num_workers=4)
broken = 7


def ends():
    raise SystemExit(0)
"""


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    made = InteractiveShell.instance()
    magics.load(made)
    made.user_ns["loader"] = DataLoader(Sleeping(1200, wait_s=0.02), batch_size=2)
    yield made
    magics.unload(made)
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("short_trials")
def test_compare_in_a_line_gives_what_the_function_gives(shell: Any) -> None:
    found = shell.run_line_magic("ioscope", "compare loader --toggles workers=4 --budget 90")
    assert isinstance(found, Comparison)
    assert found.verdict == "faster"
    assert found.arms[1].toggles == ("workers=4",)
    formatter = shell.display_formatter.formatters["text/plain"]
    assert "4 worker processes" in formatter(found)


def test_tune_in_a_line_is_shown_as_a_table(shell: Any) -> None:
    found = shell.run_line_magic("ioscope", "tune loader --budget 6")
    assert isinstance(found, Tuning)
    assert found.tried[0].setting == found.current
    assert found.best in {row.setting for row in found.tried}
    formatters = shell.display_formatter.formatters
    assert "workers" in formatters["text/plain"](found)
    assert "<table" in formatters["text/html"](found)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("compare nothing --toggles workers", "nothing"),
        ("compare loader", "toggles"),
        ("compare loader --toggles speed", "workers"),
        ("compare loader --toggles workers=0", "whole number.*no_workers"),
        ("compare loader --toggles prefetch=0", "whole number from 1 to 1024$"),
        ("report --colour", "report.*--colour"),
        ("report", "no cell was recorded yet"),
        ("compare loader --toggles persistent_workers=2", "takes no number"),
        ("compare loader.dataset.nope --toggles workers", "nope"),
        ("compare loader --cache lukewarm --toggles workers", "lukewarm"),
        ("compare loader --step=-1 --toggles workers", "step"),
        ("tune", "LOADER"),
        ("tune loader --budget nan", "budget"),
        ("fly loader", "compare"),
        ("compare 'loader", "quotation"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(shell: Any, line: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        shell.run_line_magic("ioscope", line)


def test_the_report_is_written_as_a_page(shell: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    recording = Recording.of(profile())
    shell.user_ns["_ioscope"] = recording
    try:
        assert shell.run_line_magic("ioscope", f"report --html '{page}'") is None
        assert html.escape(recording.diagnosis.headline) in page.read_text()
        with pytest.raises(UsageError, match="cannot write"):
            shell.run_line_magic("ioscope", f"report --html '{tmp_path}'")
    finally:
        del shell.user_ns["_ioscope"]


def test_help_of_a_command_runs_nothing(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("ioscope", "tune --help") is None
    assert "--budget" in capsys.readouterr().out


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(MODULE)
    return subprocess.run(
        [sys.executable, "-m", "jupyter_ioscope", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_compare_on_the_command_line(tmp_path: Path) -> None:
    done = command(
        tmp_path, "compare", "mine.py:make", "mine.py:faster", "--budget", "60", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "faster"


def test_tune_on_the_command_line(tmp_path: Path) -> None:
    done = command(tmp_path, "tune", "mine.py:make", "--budget", "8")
    # 0: something better was proven; 3: not, which a busy machine may end with.
    assert done.returncode in (0, 3), done.stderr
    assert ("num_workers=" in done.stdout) == (done.returncode == 0)
    assert "(as it is)" in done.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("compare", "none.py:make", "--toggles", "workers"), "no file"),
        (("compare", "mine.py:absent", "--toggles", "workers"), "absent"),
        (("compare", "mine.py:broken", "--toggles", "workers"), "DataLoader"),
        (("tune", "mine.py"), "FILE.py:NAME"),
        (("bench", "pickle", "mine.py:ends"), "ends() of 'mine.py' failed: SystemExit"),
    ],
)
def test_bad_targets_end_with_exit_code_2(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    done = command(tmp_path, *words)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
