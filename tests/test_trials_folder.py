"""The folder of a comparison goes when the comparison does, or at the next one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.folder import private_folder, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    short = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    yield short
    short.rmdir()  # fails when anything is left in it


def test_the_folder_is_private_and_goes_even_after_an_error(base: Path) -> None:
    with pytest.raises(RuntimeError), private_folder() as folder:  # noqa: PT012
        assert Path(folder).stat().st_mode & 0o077 == 0
        (Path(folder) / "data").write_text("x")
        raise RuntimeError
    assert list(base.iterdir()) == []


def test_a_living_comparison_keeps_its_folder_and_a_dead_ones_is_swept(base: Path) -> None:
    dead = base / "ioscope-trials-dead"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "delivered-1.bin").touch()
    with private_folder() as living:
        assert not dead.exists()
        sweep(str(base))
        assert Path(living).exists()


def test_folders_of_others_are_left_alone(base: Path) -> None:
    other = base / "ioscope-trials-without-lock"
    other.mkdir()
    with private_folder():
        assert other.exists()
    other.rmdir()


def test_without_a_place_for_it_one_sentence_says_what_to_do(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(base / "none"))
    with pytest.raises(TrialError, match=r"none could be made .*: set TMPDIR"), private_folder():
        pass
