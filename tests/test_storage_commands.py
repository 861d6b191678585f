"""`storage`, `limits` and `baseline` in a notebook's line and on the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from jupyter_ioscope import cli, magics
from jupyter_ioscope.model import files
from jupyter_ioscope.model.storage import Baseline, BaselineCheck, Limits, StorageCheck
from jupyter_ioscope.recording import Recording
from tests import builders

pytestmark = pytest.mark.timeout(240)
QUICK = "--engine own --seconds 0.05 --repeats 1 --size 16"


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    made = InteractiveShell.instance()
    magics.load(made)
    yield made
    magics.unload(made)
    InteractiveShell.clear_instance()


def shown(shell: Any, value: object) -> tuple[str, str]:
    formatters = shell.display_formatter.formatters
    return formatters["text/plain"](value), formatters["text/html"](value)


def test_storage_in_a_line_is_checked_and_means_something_for_the_last_profile(
    shell: Any, tmp_path: Path
) -> None:
    shell.user_ns["_ioscope"] = Recording.of(builders.profile())
    found = shell.run_line_magic("ioscope", f"storage '{tmp_path}'")
    assert isinstance(found, StorageCheck)
    assert found.for_loader
    text, html = shown(shell, found)
    assert found.verdict in text
    assert "<table" in html
    del shell.user_ns["_ioscope"]


def test_limits_and_baseline_in_a_line(shell: Any, tmp_path: Path) -> None:
    limits = shell.run_line_magic("ioscope", "limits")
    assert isinstance(limits, Limits)
    assert "may be used" in shown(shell, limits)[0]
    file = tmp_path / "base.json"
    saved = shell.run_line_magic("ioscope", f"baseline save {tmp_path} {file} {QUICK}")
    assert isinstance(saved, Baseline)
    assert "seqread" in shown(shell, saved)[1]
    checked = shell.run_line_magic(
        "ioscope", f"baseline check {tmp_path} --file {file} {QUICK} --loss 98,99 --p99 5000,6000"
    )
    assert isinstance(checked, BaselineCheck)
    assert checked.thresholds in shown(shell, checked)[0].replace("\n    ", " ")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("storage", "PATH"),
        ("storage /no/such/place", "there is no"),
        ("storage / --silence 0", "silence_s"),
        ("baseline", "action"),
        ("baseline keep /", "save"),
        ("baseline check / --file /no/such/file", "save one first"),
        ("baseline check / /no/such/file", "save one first"),
        ("baseline check / one.json --file two.json", "two files for the baseline"),
        ("baseline check / '' ", "file is empty"),
        ("baseline save / --size 1", "size_bytes"),
        ("baseline check / --loss five", "two numbers"),
        ("limits now", "unrecognized"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(shell: Any, line: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        shell.run_line_magic("ioscope", line)


def test_the_command_line_gives_json_and_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["storage", str(tmp_path), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == {"healthy": 0, "unknown": 2}.get(document["verdict"], 1)
    assert {row["name"] for row in document["timings"]} >= {"sequential read", "random read"}
    assert cli.main(["limits", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cores"] > 0
    assert cli.main(["storage", "s3://bucket/x"]) == 2
    assert cli.main(["storage", str(tmp_path / "none")]) == 2
    assert "there is no" in capsys.readouterr().err


def test_a_saved_profile_can_be_named_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.ioscope.json"
    files.save(builders.profile(), file)
    cli.main(["storage", str(tmp_path), "--profile", str(file), "--json"])
    assert json.loads(capsys.readouterr().out)["for_loader"]


def test_a_degraded_baseline_fails_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "base.json"
    twice = QUICK.replace("--repeats 1", "--repeats 2").split()  # one run alone tells no change
    words = ["baseline", "save", str(tmp_path), "--file", str(file), *twice]
    assert cli.main(words) == 0
    document = json.loads(file.read_text())
    for name in ("bytes_per_s", "bytes_per_s_low", "bytes_per_s_high"):
        document["baseline"]["jobs"][name] = [1e15] * len(document["baseline"]["jobs"][name])
    file.write_text(json.dumps(document))
    words[1] = "check"
    assert cli.main(words) == 1
    assert "is degraded" in capsys.readouterr().out
    assert os.listdir(tmp_path) == ["base.json"]
    file.write_text("{}")
    assert cli.main(words) == 2
