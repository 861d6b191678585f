"""`ioscope.bench`, `%ioscope bench` and the command line, on real files in real processes."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import jupyter_ioscope as ioscope
from jupyter_ioscope import cli, magics
from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.model.bench import BenchArm, BenchResult, BenchTable
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.storage import apart
from jupyter_ioscope.views.benches import bench_html, bench_text
from tests.leftovers import children, zombies

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "rows.jsonl"
    file.write_text("".join(f'{{"id": {n}, "text": "row {n}"}}\n' for n in range(200)))
    return file


@pytest.fixture(scope="module")
def found(lines: Path) -> BenchResult:
    before = children() | zombies()
    result = ioscope.bench("json", lines, budget_s=0.2)
    assert children() | zombies() <= before
    return result


def test_a_bench_runs_apart_and_leaves_nothing(lines: Path, found: BenchResult) -> None:
    assert found.isolation == "forked child"
    reference = found.arm("json")
    assert reference is not None
    assert reference.trials >= 4
    assert reference.seconds_per_item > 0
    assert str(found) == found.headline


def test_text_and_html_say_the_same_and_fit(found: BenchResult) -> None:
    text, html = bench_text(found), bench_html(found)
    assert all(len(line) <= 100 for line in text.splitlines())
    for words in ("json", "Lines that trip parsers up", "reference"):
        assert words in text
        assert words in html


def test_everything_shown_is_escaped() -> None:
    bad = "<script>alert(1)</script>"
    row = BenchArm(bad, bad, bad, "faster", 2.0, 1.5, 2.5, 1e-3, 1e6, 1e-3, 5, 0, 5, 4,
                   "differs", (bad,), bad)  # fmt: skip
    table = BenchTable(bad, ((bad, bad), (bad, bad)), (bad,))
    made = BenchResult("x", bad, bad, bad, bad, (row,), (table,), (bad,), bad, 0.95, bad, bad, 1.0)
    assert "<script" not in bench_html(made)
    assert "alert" in bench_text(made)


def test_a_bench_that_is_cancelled_has_told_what_runs_and_leaves_nothing(
    lines: Path, found: BenchResult
) -> None:
    told: list[str] = []
    cancel = threading.Event()

    def on_progress(step: Any) -> None:
        told.append(step.text)
        cancel.set()

    before = children()
    with pytest.raises(TrialError, match="cancelled"):
        ioscope.bench("json", lines, budget_s=60, on_progress=on_progress, cancel=cancel)
    assert told
    assert children() <= before


@pytest.mark.parametrize(
    ("name", "target", "reason"),
    [
        ("jsno", "x", "did you mean json"),
        (None, "x", "there is no bench None"),
        ("json", "no-such-file.jsonl", "there is no '/"),
        ("pickle", threading.Lock(), "cannot be pickled"),
    ],
)
def test_bad_input_comes_back_as_an_input_error(name: Any, target: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        ioscope.bench(name, target, budget_s=0.1)


def test_a_path_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = apart.Outcome((), "", "reading its beginning", 0)
    monkeypatch.setattr(apart, "run", lambda *_, **__: silent)
    with pytest.raises(InputError, match="does not answer: given up after 10"):
        ioscope.bench("json", tmp_path / "rows.jsonl")


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    made = InteractiveShell.instance()
    magics.load(made)
    yield made
    magics.unload(made)
    InteractiveShell.clear_instance()


def test_a_line_takes_names_and_paths(shell: Any, lines: Path, capsys: Any) -> None:
    shell.user_ns["texts"] = ['{"a": 1}', '{"a": 2}']
    by_name = shell.run_line_magic("ioscope", "bench json texts --budget 0.1")
    assert by_name.target == "2 texts"
    assert "<table" in shell.display_formatter.formatters["text/html"](by_name)
    assert shell.run_line_magic("ioscope", "bench") is None
    assert "engines" in capsys.readouterr().out
    for line, reason in (
        ("bench pickle nothing", "has no 'nothing', and there is no such file"),
        ("bench json", "needs a target"),
        (f"bench nothing {lines}", "there is no bench"),
    ):
        with pytest.raises(UsageError, match=reason):
            shell.run_line_magic("ioscope", line)


def test_an_attribute_that_raises_is_told_in_a_sentence(shell: Any, capsys: Any) -> None:
    class Odd:
        @property
        def data(self) -> Any:
            raise RuntimeError("not opened")

    shell.user_ns["odd"] = Odd()
    with pytest.raises(UsageError, match=r"'odd\.data': RuntimeError: not opened"):
        shell.run_line_magic("ioscope", "bench pickle odd.data")


def test_the_command_line_gives_text_and_json(lines: Path, tmp_path: Path, capsys: Any) -> None:
    assert cli.main(["bench"]) == 0
    assert "threads" in capsys.readouterr().out
    assert cli.main(["bench", "json"]) == 2
    assert cli.main(["bench", "json", str(lines), "--budget", "-1"]) == 2
    script = tmp_path / "items_of_a_bench.py"
    script.write_text("def item(number):\n    return number * 2\n")
    capsys.readouterr()
    assert cli.main(["bench", "threads", f"{script}:item", "--budget", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == "item()"


def test_a_progress_line_is_overwritten_and_a_log_gets_one_line() -> None:
    live, log = io.StringIO(), io.StringIO()
    for stream, is_live in ((live, True), (log, False)):
        line = ProgressLine(stream, is_live)
        line.show("about 40 s")
        line.show("running")  # too soon after the first
        line.clear()
    assert live.getvalue() == "\rabout 40 s\r          \r"
    assert log.getvalue() == "about 40 s\n"
