"""`record` runs a script as Python does: its folder, its name, its end, the children it forks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.cli import main

pytestmark = pytest.mark.timeout(120)  # a helper process each

MOVES = """
import beside, os, sys
print("file", __file__)
print("called", sys.argv)
print("main", sys.modules["__main__"].MINE, __name__)
os.chdir("/")
"""
FORKS = """
import os, sys
child = os.fork()
if child == 0:
    sys.exit(7)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(text: str, *options: str) -> int:
    Path("train.py").write_text(text)
    return main(["record", "--no-stacks", *options, "train.py"])


def test_a_script_finds_its_folder_and_may_go_to_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = folder / "real"
    real.mkdir()
    (real / "beside.py").write_text("here = 1\n")
    (real / "train.py").write_text(f"MINE = 5\n{MOVES}")
    (folder / "link.py").symlink_to(real / "train.py")
    before = list(sys.argv), list(sys.path), sys.modules["__main__"]
    assert main(["record", "--no-stacks", "link.py", "--lr", "1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert f"file {folder / 'link.py'}" in said
    assert "called ['link.py', '--lr', '1']" in said
    assert "main 5 __main__" in said
    assert api.load(folder / "link.ioscope.json").profile.label == "link.py"
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_an_interrupted_script_ends_as_interrupted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record("raise KeyboardInterrupt") == 130
    trace = capsys.readouterr().err
    assert "KeyboardInterrupt" in trace
    assert "jupyter_ioscope" not in trace
    assert api.load(folder / "train.ioscope.json").profile.ended_by == "KeyboardInterrupt"


@pytest.mark.usefixtures("folder")
def test_a_mistake_in_the_scripts_text_is_shown_as_python_shows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert record("for x in\n") == 1
    trace = capsys.readouterr().err
    assert "SyntaxError" in trace
    assert "Traceback" not in trace


@pytest.mark.usefixtures("folder")
def test_a_report_whose_profile_cannot_be_saved_is_shown_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("out").mkdir()
    assert record("import os\nos.rmdir('out')", "--save", "out/x.json") == 2
    said = capsys.readouterr()
    assert "does not exist" in said.err
    assert len(said.out.splitlines()) > 3


def test_a_child_that_the_script_forks_ends_as_a_child(folder: Path) -> None:
    (folder / "train.py").write_text(FORKS)
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_ioscope", "record", "--no-stacks", "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    assert "child 7" in done.stdout
    assert done.stderr.count("profile: train.ioscope.json") == 1
