"""What `make` says while pip works: one line of what it does, and all of pip's text if it fails."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[1] / "notebooks" / "pip_progress.py"


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pip_progress", PATH)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_line_says_what_pip_is_doing(install: ModuleType) -> None:
    progress = install.Progress()
    said = []
    for line in (
        "Obtaining file:///home/me/ioscope",
        "  Installing build dependencies: started",
        "Collecting torch>=2.0 (from jupyter-ioscope==0.1.0)",
        "Collecting numpy",
        "Downloading torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl (190.3 MB)",
        "   ----- 190.3/190.3 MB 60 MB/s",
        "  Building editable for jupyter-ioscope (pyproject.toml): started",
        "Installing collected packages: numpy, torch, jupyter-ioscope",
    ):
        progress.heard(line)
        said.append(progress.doing)
    assert said == [
        "starting pip",
        "getting what the build needs",
        "choosing packages (1 so far)",
        "choosing packages (2 so far)",
        "downloading torch (190.3 MB)",
        "downloading torch (190.3 MB)",
        "building the JupyterLab extension",
        "unpacking 3 packages",
    ]


@pytest.mark.timeout(120)
def test_what_pip_said_is_printed_only_when_it_failed(
    install: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    assert install.main(["--no-index", "no-package-has-this-name"]) != 0
    assert "No matching distribution" in capfd.readouterr().err
    assert install.main(["--no-index", "--dry-run", "pip"]) == 0
    assert capfd.readouterr().err == ""


def test_a_log_gets_a_line_now_and_then_and_a_terminal_one_that_changes(
    install: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(install.time, "monotonic", lambda: now_s[0])
    log, terminal = install._Line(terminal=False), install._Line(terminal=True)
    for second in range(61):
        now_s[0] = float(second)
        log.show("downloading torch")
    assert capfd.readouterr().err.splitlines() == [
        "  0:20  downloading torch",
        "  0:40  downloading torch",
        "  1:00  downloading torch",
    ]
    terminal.show("unpacking")
    assert capfd.readouterr().err.startswith("\r  1:00  unpacking")
