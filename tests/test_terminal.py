"""Text on terminals that cannot show all of it, or of which nobody reads on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_ioscope.cli import main
from jupyter_ioscope.model import files
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.terminal import fitted, say
from tests import builders
from tests.view_values import profile


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict", newline="\n")


def written(text: str, encoding: str) -> str:
    out = stream(encoding)
    say(text, out)
    out.flush()
    raw = out.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("× 2.4 ± 3 µs → 40 %", "ascii", "x 2.4 +- 3 us -> 40 %"),
        ("× 2.4 ± 3 µs → 40 %", "latin-1", "× 2.4 ± 3 µs -> 40 %"),
        ("× 2.4 ± 3 µs → 40 %", "utf-8", "× 2.4 ± 3 µs → 40 %"),
        ("données/猫.npy", "ascii", "donn\\xe9es/\\u732b.npy"),
        ("caf\udce9", "utf-8", "caf\\udce9"),
        ("\x1b[31mred\x07\n\tmore", "utf-8", "\\x1b[31mred\\x07\n\tmore"),
    ],
)
def test_what_an_encoding_lacks_is_written_plainer(text: str, encoding: str, shown: str) -> None:
    assert written(text, encoding) == f"{shown}\n"


def test_a_stream_that_does_not_tell_its_encoding_gets_the_text_as_it_is() -> None:
    assert fitted("× 2", io.StringIO()) == "× 2"


def test_every_command_speaks_to_an_ascii_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    files.save(profile(hot="decode"), before)
    files.save(profile(hot="resize"), after)
    big = tmp_path / "large"
    big.write_bytes(os.urandom(1 << 20))
    for words in (
        ("difference", before, after),
        ("report", before),
        ("limits",),
        ("limits", "--profile", before),
        ("storage", str(big)),
        ("bench",),
    ):
        out = stream("ascii")
        monkeypatch.setattr(sys, "stdout", out)
        assert main(words) in (0, 1, 2)
        out.flush()
        raw = out.buffer
        assert isinstance(raw, io.BytesIO)
        assert raw.getvalue().count(b"\n") > 3


def test_a_line_of_progress_on_an_ascii_terminal() -> None:
    for live in (True, False):
        out = stream("ascii")
        line = ProgressLine(out, live)
        line.show("× 2 …")
        line.clear()
        out.flush()
        raw = out.buffer
        assert isinstance(raw, io.BytesIO)
        assert b"x 2 ..." in raw.getvalue()


def test_a_line_of_progress_is_written_again_only_when_it_says_something_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jupyter_ioscope.progress_line._EVERY_S", 0.0)
    out = io.StringIO()
    line = ProgressLine(out, live=True)
    for text in ("round 1", "round 1", "round 1", "round 2", "round 2"):
        line.show(text)
    assert out.getvalue() == "\rround 1\rround 2", "a saved notebook keeps every writing"


@pytest.mark.timeout(60)
def test_a_pipe_that_nobody_reads_on_ends_without_complaint(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    files.save(builders.profile(), path)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "jupyter_ioscope", "report", str(path)]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_whose_output_is_closed_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    files.save(builders.profile(), path)
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it under `>&-`
    assert main(["report", str(path)]) == 0


def test_a_full_disk_behind_the_output_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path = tmp_path / "a.json"
    files.save(builders.profile(), path)
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["report", str(path)]) == 2
    assert "the output cannot be written: No space left on device" in capsys.readouterr().err
