"""The doors to exports and differences: Python's, a recording's, and the command line's."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path

import pytest

import jupyter_ioscope as ioscope
from jupyter_ioscope.cli import main
from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.exports import write_page
from jupyter_ioscope.recording import Recording
from tests import builders
from tests.view_values import profile


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Path]:
    """Two profiles of the same loop: one decodes, the other resizes."""
    paths = tmp_path / "before.ioscope.json", tmp_path / "after.ioscope.json"
    for path, hot in zip(paths, ("decode", "resize"), strict=True):
        made = Recording.of(builders.profile(hot=hot), builders.offers(), (builders.comparison(),))
        made.save(path)
    return paths


def test_a_loaded_recording_knows_what_was_offered_and_tried(saved: tuple[Path, Path]) -> None:
    again = ioscope.load(saved[0])
    assert again.offers == builders.offers()
    assert again.comparisons == [builders.comparison()]
    report = json.loads(saved[0].read_text())["report"]
    assert [toggle["name"] for toggle in report["toggles"]] == [o.name for o in again.offers]


def test_a_recording_exports_itself_and_the_function_takes_both(
    saved: tuple[Path, Path], tmp_path: Path
) -> None:
    recording = ioscope.load(saved[0])
    recording.export(tmp_path / "one.trace.json")
    ioscope.export(recording.profile, tmp_path / "two.trace.json")
    assert (tmp_path / "one.trace.json").read_bytes() == (tmp_path / "two.trace.json").read_bytes()
    with pytest.raises(InputError, match="str is no profile"):
        ioscope.export("run.json", tmp_path / "x.folded")  # type: ignore[arg-type]


def test_two_recordings_tell_their_difference(saved: tuple[Path, Path]) -> None:
    before, after = map(ioscope.load, saved)
    found = ioscope.difference(before, after)
    assert str(found) == str(after.against(before))
    assert "decode" in found.headline
    assert "resize" in found.headline
    assert found.changes["workers merged"][0][1] < 0


def test_the_command_line_exports_several_files_at_once(
    saved: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(tmp_path / name) for name in ("a.speedscope.json", "a.folded")]
    assert main(["export", str(saved[0]), *names]) == 0
    assert all(Path(name).stat().st_size for name in names)
    assert capsys.readouterr().err.count("exported: ") == 2
    assert main(["export", str(saved[0]), str(tmp_path / "a.txt")]) == 2
    assert "give a name that ends in" in capsys.readouterr().err


def test_the_command_line_tells_a_difference_and_writes_its_page(
    saved: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "difference.html"
    assert main(["difference", *map(str, saved), "--html", str(page)]) == 0
    assert "B against A" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")
    assert main(["difference", str(saved[0]), str(tmp_path / "none.json")]) == 2


def test_a_page_of_a_loaded_profile_has_its_offers_and_comparisons(
    saved: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(saved[0]), "--html", str(page)]) == 0
    html = page.read_text()
    assert "To try" in html
    assert builders.comparison().arms[1].label in html


def test_of_a_page_that_does_not_fit_on_the_disk_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            path.write_text(text[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jupyter_ioscope.exports.open", lambda *_, **__: Full(), raising=False)
    with pytest.raises(ProfileFileError, match="No space left"):
        write_page(str(path), "<!doctype html>")
    assert not path.exists()


def test_a_page_never_takes_the_place_of_its_profile(
    saved: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved[1].read_bytes()
    (tmp_path / "link.html").symlink_to(saved[1])
    for page in (str(saved[1]), str(tmp_path / "link.html")):
        assert main(["report", str(saved[1]), "--html", page]) == 2
        assert main(["difference", *map(str, saved), "--html", page]) == 2
        assert "is the profile itself" in capsys.readouterr().err
    assert saved[1].read_bytes() == before


def test_without_stacks_a_difference_says_what_is_missing() -> None:
    bare = builders.without(profile(), stacks=None)
    with pytest.raises(InputError, match="one has no stacks"):
        ioscope.difference(bare, profile())
