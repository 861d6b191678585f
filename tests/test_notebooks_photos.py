"""The photographs of the tutorial: real, distinct, whole or not there at all."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("skimage")
pytest.importorskip("sklearn")

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]  # each test has processes of its own
Image = pytest.importorskip("PIL.Image")

SCRIPT = Path(__file__).parent.parent / "notebooks" / "photos.py"
COUNT = 24


@pytest.fixture(scope="module")
def photos() -> ModuleType:
    spec = importlib.util.spec_from_file_location("photos", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["photos"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("made") / "photos"
    command = [sys.executable, str(SCRIPT), str(target), "--count", str(COUNT)]
    subprocess.run(command, check=True, capture_output=True, timeout=180)
    return target


def test_every_file_is_a_distinct_jpeg_of_the_size_that_the_manifest_says(folder: Path) -> None:
    rows = json.loads((folder / "manifest.json").read_text())["pictures"]
    assert len(rows) == COUNT == len({row[4] for row in rows})
    for file, width, height, size_bytes, _ in rows:
        with Image.open(folder / file) as picture:
            picture.load()
            assert (picture.format, picture.mode) == ("JPEG", "RGB")
            assert picture.size == (width, height)
        assert (folder / file).stat().st_size == size_bytes


def test_folders_are_the_classes_and_hold_photographs_of_many_kinds(folder: Path) -> None:
    classes = [path for path in folder.iterdir() if path.is_dir()]
    assert len(classes) >= 8
    assert all(list(path.glob("*.jpg")) for path in classes)


def test_nothing_is_left_beside_the_finished_folder(folder: Path) -> None:
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_finished_folder_is_used_again_untouched(photos: ModuleType, folder: Path) -> None:
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert photos.photo_folder(folder, COUNT) == folder
    assert (folder / "manifest.json").stat().st_mtime_ns == before


def test_a_picture_depends_on_its_number_only(photos: ModuleType, tmp_path: Path) -> None:
    for _, name in [*photos.SCIKIT_IMAGE.items(), *photos.SCIKIT_LEARN.items()]:
        (tmp_path / name).mkdir(exist_ok=True)
    assert photos.make(tmp_path, 7) == photos.make(tmp_path, 7)
    assert photos.make(tmp_path, 7).sha256 != photos.make(tmp_path, 17).sha256


@pytest.mark.parametrize("damage", ["truncate", "remove", "foreign manifest"])
def test_a_damaged_folder_is_noticed(
    photos: ModuleType, folder: Path, tmp_path: Path, damage: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert photos.complete(copy, COUNT)
    victim = next(copy.glob("*/*.jpg"))
    if damage == "truncate":
        victim.write_bytes(victim.read_bytes()[:100])
    elif damage == "remove":
        victim.unlink()
    else:
        (copy / "manifest.json").write_text('["somebody", "else"]')
    assert not photos.complete(copy, COUNT)


def test_a_folder_of_somebody_else_is_refused_and_keeps_its_files(
    photos: ModuleType, folder: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "holiday"
    theirs.mkdir()
    (theirs / "manifest.json").write_text('{"version": 1}')
    building = tmp_path / "building"
    building.mkdir()
    with pytest.raises(FileExistsError, match="other files"):
        photos.put_in_place(building, theirs, COUNT)
    assert (theirs / "manifest.json").read_text() == '{"version": 1}'


def test_a_script_without_a_main_guard_gets_them_too(tmp_path: Path) -> None:
    script = tmp_path / "user.py"
    script.write_text("from photos import photo_folder\nprint(photo_folder())\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(SCRIPT.parent),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "IOSCOPE_PHOTOS": "11",
    }
    done = subprocess.run(
        [sys.executable, str(script)], check=True, capture_output=True, text=True, env=environment
    )
    folder = Path(done.stdout.strip())
    assert tmp_path / "cache" in folder.parents
    assert len(list(folder.glob("*/*.jpg"))) == 11
