"""Every public call that takes a path says in one sentence what is wrong with one that is none."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jupyter_ioscope as ioscope
from jupyter_ioscope import cli, exports
from jupyter_ioscope.arguments import kind
from jupyter_ioscope.cli import main
from jupyter_ioscope.errors import InputError, IoscopeError
from jupyter_ioscope.model import files
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.storage import apart
from tests import builders

NONE = {"None": None, "a number": 3, "nothing": "", "NUL": "a\0b"}


def recording() -> Recording:
    return Recording.of(builders.profile(), (), ())


CALLS: dict[str, Callable[[Any], object]] = {
    "load": ioscope.load,
    "save": lambda path: recording().save(path),
    "recording.export": lambda path: recording().export(path),
    "export": lambda path: ioscope.export(builders.profile(), path),
    "check_storage": ioscope.check_storage,
    "save_baseline": ioscope.save_baseline,
    "save_baseline's file": lambda path: ioscope.save_baseline(".", path),
    "check_baseline's file": lambda path: ioscope.check_baseline(".", path),
    "bench": lambda path: ioscope.bench("json", path),
    "report --html": lambda path: exports.write_page(path, "<p>", "run.json"),
}


@pytest.mark.parametrize("bad", NONE)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_path_is_named_with_its_value_and_what_to_give(call: str, bad: str) -> None:
    with pytest.raises(InputError) as told:
        CALLS[call](NONE[bad])
    text = str(told.value)
    assert "give" in text
    assert repr(NONE[bad]) in text or kind(NONE[bad]) in text


def test_a_path_in_bytes_is_a_path(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "run.ioscope.json")
    recording().save(path)  # type: ignore[arg-type]
    assert ioscope.load(path).profile == builders.profile()  # type: ignore[arg-type]


def test_the_home_folder_may_be_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    recording().save("~/run.ioscope.json")
    assert ioscope.load("~/run.ioscope.json").profile == builders.profile()
    assert ioscope.load(tmp_path / "run.ioscope.json").profile == builders.profile()


def test_a_pipe_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.folded"
    os.mkfifo(pipe)
    for call in ("load", "save", "export", "save_baseline's file", "check_baseline's file"):
        with pytest.raises(IoscopeError, match="pipe"):
            CALLS[call](pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_script_does_not_run_where_its_profile_cannot_be_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, ran = tmp_path / "train.py", tmp_path / "ran"
    script.write_text(f"open({str(ran)!r}, 'w')")
    for where, words in (("", "--save is empty"), (str(tmp_path / "no/x.json"), "does not exist")):
        assert main(["record", "--save", where, str(script)]) == 2
        assert words in capsys.readouterr().err
    assert not ran.exists()


def test_a_profile_that_is_none_is_named(tmp_path: Path) -> None:
    name: Any = "run.ioscope.json"
    with pytest.raises(InputError, match="profile is a str"):
        ioscope.limits(name)
    with pytest.raises(InputError, match="profile is a str"):
        ioscope.check_storage(tmp_path, profile=name)


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    files.save(builders.profile(), path)
    raw = bytearray(path.read_bytes())
    raw[30:40] = b"\xff" * 10
    path.write_bytes(bytes(raw))
    with pytest.raises(IoscopeError, match="cannot be read"):
        ioscope.load(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ioscope.save_baseline("s3://bucket/data"),
        lambda: ioscope.bench("read", "s3://bucket/data"),
        lambda: ioscope.bench("json", "simplecache::hf://datasets/x"),
    ],
)
def test_the_address_of_an_object_store_is_no_path(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"is an address .* give the path of a mount of it"):
        call()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda bad: ioscope.check_storage(".", silence_s=bad), "silence_s is 'x'"),
        (lambda bad: ioscope.save_baseline(".", seconds=bad), "seconds is 'x': give a number"),
        (lambda bad: ioscope.save_baseline(".", repeats=bad), "repeats is 'x': give a whole"),
        (lambda bad: ioscope.save_baseline(".", repeats=1.5), "repeats is 1.5: give a whole"),  # type: ignore[arg-type]
        (lambda bad: ioscope.save_baseline(".", size_bytes=bad), "size_bytes is 'x'"),
        (lambda bad: ioscope.bench("json", [b"1"], budget_s=bad), "budget_s"),
        (lambda bad: ioscope.profile(batches=bad), "batches is 'x'"),
        (lambda bad: ioscope.profile(batches=2.5), "batches is 2.5: give a whole"),  # type: ignore[arg-type]
    ],
)
def test_numbers_that_are_none_are_named(call: Callable[[Any], object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        call("x")


def test_a_cell_is_not_run_where_its_profile_cannot_be_saved() -> None:
    pytest.importorskip("IPython")
    from jupyter_ioscope.magic_line import parse

    for line in ("--save ''", '--save "a\0b"'):
        with pytest.raises(InputError, match=r"--save is .* give the path"):
            parse(line)
    assert parse("--save run.ioscope.json").save == "run.ioscope.json"


def test_a_working_folder_that_is_gone_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InputError, match="working folder"):
        ioscope.check_storage("x")
    with pytest.raises(InputError, match="working folder"):
        ioscope.save_baseline("x")
    with pytest.raises(InputError, match="working folder of this process is gone"):
        ioscope.bench("json", "rows.jsonl")


def test_a_baseline_does_not_wait_for_a_place_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = apart.Outcome((), "", "looking at it", 0)
    monkeypatch.setattr(apart, "run", lambda *_, **__: silent)
    with pytest.raises(InputError, match="does not answer: given up after 10"):
        ioscope.save_baseline(tmp_path, tmp_path / "b.json")


def test_an_interrupted_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "load", interrupted)
    assert main(["report", "x"]) == 130
    assert capsys.readouterr().err == "ioscope: interrupted\n"
