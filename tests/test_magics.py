"""The magic in a real kernel: the cell runs as it always did, and the report is under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from jupyter_ioscope import magic_line
from jupyter_ioscope.errors import InputError

pytest.importorskip("torch")

pytestmark = [pytest.mark.timeout(300), pytest.mark.beside]  # a kernel of its own
nbformat = pytest.importorskip("nbformat")

MIME = "application/vnd.ioscope.report+json"
SETUP = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        if i == self.bad: raise ValueError("item " + str(i))
        time.sleep(0.004)
        return torch.tensor(i)
    bad = -1
data = Slow()
loader = DataLoader(data, batch_size=4)
"""


class Kernel:
    """A kernel that runs one cell after another and gives each one's outputs."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client
        self._count = 0

    def run(self, source: str, fails: bool = False) -> list[Any]:
        cell = nbformat.v4.new_code_cell(source)
        self._client.nb.cells.append(cell)
        self._count += 1
        try:
            self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        except CellExecutionError:
            assert fails
        else:
            assert not fails
        return list(cell.outputs)

    def text(self, expression: str) -> str:
        (output,) = self.run(f"print({expression})")
        return str(output["text"]).strip()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=180, kernel_name="python3")
    with client.setup_kernel():
        made = Kernel(client)
        made.run("%load_ext ioscope")
        made.run(SETUP)
        yield made


def reports(outputs: list[Any]) -> list[Any]:
    return [output["data"] for output in outputs if MIME in output.get("data", {})]


def test_a_profiled_cell_shows_its_report_and_keeps_its_own_output(kernel: Kernel) -> None:
    outputs = kernel.run("%%ioscope\nfor batch in loader: pass\nprint('mine')\n2 + 3")
    (report,) = reports(outputs)
    assert {MIME, "text/html", "text/plain"} <= set(report)
    assert "waited" in report["text/plain"]
    assert any(output.get("text") == "mine\n" for output in outputs)
    assert any(output.get("data", {}).get("text/plain") == "5" for output in outputs)
    assert kernel.text("len(_ioscope.batches)") == "10"
    cell = nbformat.v4.new_code_cell(outputs=outputs)
    saved = nbformat.v4.writes(nbformat.v4.new_notebook(cells=[cell]))
    assert 5_000 < len(saved.encode()) <= 150_000


def test_a_debugger_that_is_on_is_told_before_the_cell_runs(kernel: Kernel) -> None:
    switch = "get_ipython().kernel.debugger.is_started = "
    kernel.run(switch + "True")
    outputs = kernel.run("%%ioscope --quiet\nprint('mine')")
    kernel.run(switch + "False")
    told = "".join(output.get("text", "") for output in outputs)
    assert re.search("debugger is on.*mine", told, re.DOTALL)
    outputs = kernel.run("%%ioscope --quiet\nprint('mine')")
    assert [output["text"] for output in outputs] == ["mine\n"]


def test_a_failing_cell_has_the_traceback_it_would_have_without_the_magic(kernel: Kernel) -> None:
    kernel.run("data.bad = 22")
    try:
        body = "# first line\nfor batch in loader:\n    x = 1"
        plain = traceback_of(kernel.run(body, fails=True))
        outputs = kernel.run(body.replace("# first line", "%%ioscope"), fails=True)
    finally:
        kernel.run("data.bad = -1")
    assert traceback_of(outputs).replace("# %%ioscope", "# first line") == plain
    assert len(reports(outputs)) == 1
    assert kernel.text("_ioscope.profile.ended_by") == "ValueError"


def traceback_of(outputs: list[Any]) -> str:
    (error,) = [output for output in outputs if output["output_type"] == "error"]
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error["traceback"]))
    return re.sub(r"In\s?\[\d+\]|0x[0-9a-f]+", "", text)


def test_top_level_await_and_other_cell_magics_still_work(kernel: Kernel) -> None:
    outputs = kernel.run("%%ioscope\nimport asyncio\nawait asyncio.sleep(0)\nfor b in loader: pass")
    assert len(reports(outputs)) == 1
    outputs = kernel.run("%%ioscope\n%%capture got\nfor b in loader: pass\nprint('kept')")
    assert len(reports(outputs)) == 1
    assert kernel.text("got.stdout") == "kept"


def test_quiet_shows_nothing_and_save_writes_a_profile(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "run.ioscope.json"
    outputs = kernel.run(f"%%ioscope --quiet --save '{path}'\nfor b in loader: pass")
    assert outputs == []
    kernel.run("import ioscope")
    assert kernel.text(f"ioscope.load({str(path)!r}).profile == _ioscope.profile") == "True"


def test_a_mistake_on_the_line_stops_the_cell_with_a_sentence(kernel: Kernel) -> None:
    outputs = kernel.run("%%ioscope --rate fast\nprint('ran')", fails=True)
    text = str(outputs)
    assert "invalid float value: 'fast'" in text
    assert "ran\\n" not in text
    assert "--no-stacks" in kernel.run("%%ioscope --help\nprint('ran')")[0]["text"]


def test_a_cell_that_cannot_be_read_leaves_the_last_profile_alone(kernel: Kernel) -> None:
    kernel.run("%%ioscope --quiet\nfor b in loader: pass")
    outputs = kernel.run("%%ioscope\nfor b in loader\n    pass", fails=True)
    assert "SyntaxError" in traceback_of(outputs)
    assert reports(outputs) == []
    assert kernel.text("len(_ioscope.batches)") == "10"
    # `return` is found wrong only after the loop has run
    outputs = kernel.run("%%ioscope\nfor b in loader: break\nreturn", fails=True)
    assert len(reports(outputs)) == 1
    assert kernel.text("len(_ioscope.batches)") == "1"


INTERRUPTED = """
import os, signal
from jupyter_ioscope.capture.profiler import Profiler
plain = Profiler.{method}
def interrupted(self, *arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return plain(self, *arguments)
Profiler.{method} = interrupted
"""


def test_an_interrupt_while_the_recording_starts_ends_the_cell(kernel: Kernel) -> None:
    kernel.run(INTERRUPTED.format(method="_start"))
    try:
        outputs = kernel.run("%%ioscope\nprint('ran')", fails=True)
        broken = kernel.run("%%ioscope\nprint('ran'", fails=True)
    finally:
        kernel.run("Profiler._start = plain")
    assert "KeyboardInterrupt" in traceback_of(outputs)
    assert "ran\n" not in str(outputs)
    assert "Error in callback" not in str(outputs)
    assert reports(outputs) == []
    assert "SyntaxError" in traceback_of(broken)
    assert kernel.text("'the next cell runs'") == "the next cell runs"


def test_an_interrupt_while_the_recording_ends_does_not_lose_the_report(kernel: Kernel) -> None:
    kernel.run(INTERRUPTED.format(method="_halt"))
    try:
        outputs = kernel.run("%%ioscope --no-stacks\nfor b in loader: pass")
    finally:
        kernel.run("Profiler._halt = plain")
    assert "Error in callback" not in str(outputs)
    assert len(reports(outputs)) == 1
    assert kernel.text("len(_ioscope.batches)") == "10"


def test_a_cell_whose_line_another_magic_took_is_told(kernel: Kernel) -> None:
    outputs = kernel.run("%%time\n%%ioscope\nfor b in loader: pass")
    assert "ioscope did not record this cell: put %%ioscope above" in str(outputs)
    assert reports(outputs) == []
    assert "did not record" not in str(kernel.run("for b in loader: pass"))


BROKEN = """
from jupyter_ioscope.capture.profiler import Profiler
plain = Profiler._profile
def broken(self, *_): raise RuntimeError('bug')
Profiler._profile = broken
"""


def test_a_mistake_of_our_own_is_one_sentence_and_keeps_the_last_profile(kernel: Kernel) -> None:
    kernel.run("%%ioscope --quiet\nfor b in loader: pass")
    kernel.run(BROKEN)
    try:
        outputs = kernel.run("%%ioscope --no-stacks\nfor b in loader: break\nprint('mine')")
    finally:
        kernel.run("Profiler._profile = plain")
    assert "ioscope could not make the profile (RuntimeError: bug)" in str(outputs)
    assert "mine" in str(outputs)
    assert "Error in callback" not in str(outputs)
    assert kernel.text("len(_ioscope.batches)") == "10"


def test_unloading_in_a_profiled_cell_ends_the_recording(kernel: Kernel) -> None:
    kernel.run("%%ioscope --quiet\n%unload_ext ioscope")
    try:
        kernel.run("from jupyter_ioscope.capture.profiler import recording")
        assert kernel.text("recording()") == "False"
    finally:
        kernel.run("%load_ext ioscope")


def test_unloading_takes_everything_out(kernel: Kernel) -> None:
    kernel.run("%unload_ext ioscope")
    try:
        outputs = kernel.run("%%ioscope\npass", fails=True)
        assert "not found" in str(outputs)
    finally:
        kernel.run("%load_ext ioscope")


def test_the_options_are_parsed_and_checked() -> None:
    options = magic_line.parse("--batches 5 --no-stacks --label 'my run'")
    assert options.capture.batches == 5
    assert not options.capture.stacks
    assert options.capture.label == "my run"
    for line in ("--batches 0", "--seconds -1", "--rate 0", "--wrong", "--label 'open"):
        with pytest.raises(InputError):
            magic_line.parse(line)


def test_line_numbers_stay_when_the_magic_is_taken_off() -> None:
    assert magic_line.strip_magic(["%%ioscope --batches 3\n", "x = 1\n"]) == [
        "# %%ioscope\n",
        "x = 1\n",
    ]
    assert magic_line.strip_magic(["%%ioscope\n", "%%time\n", "x\n"]) == ["%%time\n", "x\n"]
    untouched = ["%%ioscope --help\n"]
    assert magic_line.strip_magic(untouched) == untouched
    assert magic_line.strip_magic(["x = '%%ioscope'\n"]) == ["x = '%%ioscope'\n"]
