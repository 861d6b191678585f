"""The Binder image: its files are well-formed, agree with the package, and name what exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.binder_box import MEMORY_BYTES, box

yaml = pytest.importorskip("yaml")
tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

ROOT = Path(__file__).parent.parent
BINDER = ROOT / "binder"
CONDA_NAMES = {"matplotlib": "matplotlib-base", "torch": "pytorch-cpu"}
# what only runs or checks notebooks, which a visitor's server does not do
NOT_NEEDED = {"ipykernel", "nbclient", "nbconvert", "nbformat"}


def conda_packages() -> dict[str, str]:
    environment = yaml.safe_load((BINDER / "environment.yml").read_text())
    lines = [line for line in environment["dependencies"] if isinstance(line, str)]
    return {name_of(line): line for line in lines}


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    return match[0].lower()


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def test_every_package_that_the_tutorials_need_is_in_the_image() -> None:
    needed = [*project()["dependencies"], *project()["optional-dependencies"]["demo"]]
    names = {name_of(requirement) for requirement in needed} - NOT_NEEDED
    assert names
    assert {CONDA_NAMES.get(name, name) for name in names} <= set(conda_packages())


def test_lower_bounds_are_not_below_those_of_the_package() -> None:
    images = conda_packages()
    for requirement in project()["dependencies"]:
        assert images[name_of(requirement)] == requirement


def test_the_image_has_a_python_that_the_package_supports() -> None:
    version = conda_packages()["python"].partition("=")[2]
    assert f"Programming Language :: Python :: {version}" in project()["classifiers"]


@pytest.mark.parametrize("script", ["postBuild", "start"])
def test_scripts_can_be_run_and_are_valid(script: str) -> None:
    assert os.access(BINDER / script, os.X_OK)
    subprocess.run(["bash", "-n", str(BINDER / script)], check=True, timeout=90)


def test_files_that_the_build_uses_exist() -> None:
    text = (BINDER / "postBuild").read_text()
    named = re.findall(r"(?:binder|notebooks)/[\w./]+", text)
    assert "notebooks/photos.py" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_visitors_server_uses_the_photographs_that_the_image_holds() -> None:
    done = subprocess.run(
        ["binder/start", "printenv", "IOSCOPE_PHOTOS"],
        cwd=ROOT,
        env={**os.environ, "IOSCOPE_PHOTOS": "1"},
        check=True,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert 200 <= int(done.stdout) <= 1000
    assert "source binder/settings" in (BINDER / "postBuild").read_text()


ATTACH = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
seized = libc.ptrace(0x4206, os.getppid(), None, None)  # PTRACE_SEIZE
print(seized, ctypes.get_errno(), len(os.sched_getaffinity(0)))
"""


@pytest.mark.timeout(240)
def test_the_box_of_the_check_has_one_core_and_lets_nobody_attach(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with box() as limits:
        if limits.group is not None:
            names = ("memory.limit_in_bytes", "memory.max")
            found = [limits.group / name for name in names if (limits.group / name).exists()]
            assert found[0].read_text().strip() == str(MEMORY_BYTES)
        process = limits.popen([sys.executable, "-c", ATTACH], tmp_path, os.environ, log)
        assert process.wait(150) == 0
    assert log.read_text().split() == ["-1", "1", "1"]
    assert limits.group is None or not limits.group.exists()
