"""Profile files: the same value comes back, anything else is refused with a sentence."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.check import check_profile
from jupyter_ioscope.model.prediction import Prediction
from tests import builders


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.ioscope.json"
    files.save(builders.profile(), path)
    return path


def test_a_profile_comes_back_equal(saved: Path) -> None:
    assert files.load(saved) == builders.profile()


def test_a_compressed_profile_comes_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "run.ioscope.json.gz"
    files.save(builders.profile(), path)
    assert files.load(path) == builders.profile()
    assert path.stat().st_size < len(json.dumps({})) + 200_000


def test_offers_and_comparisons_come_back_equal_even_where_nothing_bounds_a_ratio(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.ioscope.json"
    predicted = Prediction(1.2, 1.0, math.inf, "a guess")
    offers = (*builders.offers(), builders.offers()[0]._replace(predicted=predicted))
    unbounded = dataclasses.replace(builders.comparison(), ratio_high=math.inf, ratio_low=-math.inf)
    files.save(builders.profile(), path, None, offers, (builders.comparison(), unbounded))
    saved = files.load_all(path)
    assert saved.offers == offers
    assert saved.comparisons == (builders.comparison(), unbounded)
    assert saved.profile == builders.profile()


def test_a_profile_without_offers_and_comparisons_has_none(saved: Path) -> None:
    assert files.load_all(saved)[1:] == ((), (), ())


def test_built_profiles_pass_their_own_check() -> None:
    assert check_profile(builders.profile()) == []


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_file_cut_anywhere_is_called_damaged(saved: Path, keep: float) -> None:
    raw = saved.read_bytes()
    saved.write_bytes(raw[: int(keep * len(raw)) if isinstance(keep, float) else keep])
    with pytest.raises(ProfileFileError, match="damaged or no ioscope profile"):
        files.load(saved)


def test_a_cut_compressed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    files.save(builders.profile(), path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ProfileFileError, match="cannot be read"):
        files.load(path)


@pytest.mark.parametrize("text", ["[]", "{}", '"x"', '{"kind": "other"}', "null"])
def test_a_foreign_file_is_called_foreign(tmp_path: Path, text: str) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with pytest.raises(ProfileFileError, match="is no ioscope profile"):
        files.load(path)


def change(path: Path, edit: Any) -> None:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def test_another_format_is_named(saved: Path) -> None:
    change(saved, lambda d: d.update(format=99))
    with pytest.raises(ProfileFileError, match="has format 99"):
        files.load(saved)


@pytest.mark.parametrize(
    "edit",
    [
        lambda p: p.update(end_ns="late"),
        lambda p: p.update(surprise=1),
        lambda p: p.pop("machine"),
        lambda p: p["batches"]["wait_end_ns"].pop(),
        lambda p: p["batches"]["wait_end_ns"].__setitem__(0, -5),
        lambda p: p["batches"].update(task="x"),
        lambda p: p["threads"][0].update(role="boss"),
        lambda p: p.update(series=[]),
        lambda p: p.update(end_ns=p["start_ns"] - 1),
    ],
)
def test_a_damaged_field_is_found(saved: Path, edit: Any) -> None:
    change(saved, lambda d: edit(d["profile"]))
    with pytest.raises(ProfileFileError, match="is damaged"):
        files.load(saved)


def test_a_missing_file_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="there is no file"):
        files.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="does not exist"):
        files.save(builders.profile(), tmp_path / "none" / "run.json")


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ProfileFileError, match="No space left"):
        files.save(builders.profile(), tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []
