"""The command line in processes of its own, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_ioscope import api
from jupyter_ioscope.model import files
from tests import builders

pytest.importorskip("torch")

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]  # each test has processes of its own

SCRIPT = """
import sys
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.03)
        return torch.tensor(index)


def main():
    way = "spawn" if "--two" in sys.argv else "fork"  # spawned workers take seconds to start
    for batch in DataLoader(Slow(), batch_size=4, num_workers=1, multiprocessing_context=way):
        pass
    print("arguments:", sys.argv[1:])
    if "fail" in sys.argv:
        raise LookupError("<b>mine</b>")
    if "leave" in sys.argv:
        sys.exit(3)
    if "say" in sys.argv:
        sys.exit("no such folder")


if __name__ == "__main__":
    main()
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jupyter_ioscope", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.ioscope.json"
    files.save(builders.profile(), path)
    return path


def test_a_script_is_recorded_with_its_spawned_worker(script: Path) -> None:
    done = run(script.parent, "record", str(script), "one", "--two")
    assert done.returncode == 0, done.stderr
    assert "arguments: ['one', '--two']" in done.stdout
    assert "6 batches" in done.stdout
    p = api.load(script.parent / "train.ioscope.json")
    assert len(p.batches) == 6
    assert {fetch.worker for fetch in p.profile.fetches} == {0}
    assert p.profile.label == "train.py"


def test_a_failing_script_keeps_its_traceback_and_its_report(script: Path) -> None:
    done = run(script.parent, "record", "--no-stacks", str(script), "fail")
    assert done.returncode == 1
    trace = done.stderr[done.stderr.index("Traceback") :]
    assert "LookupError: <b>mine</b>" in trace
    assert "jupyter_ioscope" not in trace
    assert api.load(script.parent / "train.ioscope.json").profile.ended_by == "LookupError"


def test_the_scripts_own_exit_code_is_passed_on_and_json_is_json(script: Path) -> None:
    done = run(
        script.parent,
        "record",
        "--json",
        "--batches",
        "3",
        "--save",
        "x.json",
        str(script),
        "leave",
    )
    assert done.returncode == 3
    answer = json.loads(done.stdout[done.stdout.index("{") :])
    assert "3 batches" in answer["headline"]
    assert answer["waits"]["workers"][0]["wall_ns"] > 0
    assert len(api.load(script.parent / "x.json").batches) == 3


def test_a_script_that_ends_with_a_message_still_says_it(script: Path) -> None:
    done = run(script.parent, "record", "--no-stacks", "--batches", "1", str(script), "say")
    assert done.returncode == 1
    assert "no such folder" in done.stderr.splitlines()


def test_a_saved_profile_is_shown_as_text_json_and_page(saved: Path) -> None:
    done = run(saved.parent, "report", str(saved), "--html", "page.html")
    assert done.returncode == 0, done.stderr
    headline = api.load(saved).diagnosis.headline
    assert headline in done.stdout
    page = (saved.parent / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page  # it loads nothing: see tests/test_views_html.py
    assert (
        json.loads(run(saved.parent, "report", str(saved), "--json").stdout)["headline"] == headline
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("record", "none.py"), "there is no script 'none.py'"),
        (("record", "--batches", "0", "run.ioscope.json"), "batches is 0"),
        (("record", "--batches", "2.5", "run.ioscope.json"), "invalid int value: '2.5'"),
        (("report", "none.json"), "there is no file 'none.json'"),
        (("report", "run.ioscope.json", "--html", "no/page.html"), "cannot write 'no/page.html'"),
        (("what",), "invalid choice"),
        ((), "required"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(
    saved: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(saved.parent, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
