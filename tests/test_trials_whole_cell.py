"""Trials that run the user's whole cell again, in a real kernel."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.model.profile import Cell
from jupyter_ioscope.trials import cell_code
from jupyter_ioscope.trials.cell_code import cell_of
from tests import builders
from tests.bench.kernel import kernel, outputs_of

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]

SETUP = """
import json, time
import ioscope, torch
from torch.utils.data import DataLoader
from tests.trial_loaders import Sleeping

torch.ones(2_000_000).exp().sum()  # its threads run, as in any notebook
model = torch.nn.Linear(8, 8)
loader = DataLoader(Sleeping(4000, 0.002), batch_size=8)

def tried(toggles=("workers=2",), budget_s=6, **more):
    try:
        found = _ioscope.compare(toggles, budget_s=budget_s, **more)
    except Exception as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error)}))
        return
    print(json.dumps({
        "verdict": found.verdict, "range": [found.ratio_low, found.ratio_high],
        "pairs": found.pairs, "notes": found.notes, "same": found.same_data.verdict,
        "isolation": [found.isolation, found.isolation_text], "code": found.code,
        "trials": [[t.batches, t.samples, t.steady_s] for t in found.trials]}))
"""


@pytest.fixture(scope="module")
def notebook() -> Iterator[Any]:
    with kernel() as client:
        outputs_of(client, SETUP)
        yield client


def ran(client: Any, code: str) -> str:
    """What a cell prints."""
    found = outputs_of(client, code)
    return "".join(content["text"] for kind, content, _ in found if kind == "stream")


def tried(client: Any, code: str) -> dict[str, Any]:
    """The result that a cell prints as its only output."""
    found = outputs_of(client, code)
    kinds = {kind for kind, _, _ in found} - {"status", "execute_input"}
    assert kinds == {"stream"}, "a run of the cell reached the page"
    text = "".join(content["text"] for kind, content, _ in found if kind == "stream")
    result: dict[str, Any] = json.loads(text)  # and nothing else was printed
    return result


def test_a_real_step_and_its_stand_in_agree_and_nothing_of_the_users_changes(
    notebook: Any, tmp_path: Path
) -> None:
    saved, log = tmp_path / "model.pt", tmp_path / "log.txt"
    outputs_of(
        notebook,
        "import numpy, types\nheld = types.SimpleNamespace(losses=numpy.memmap(\n"
        f"    {str(tmp_path / 'losses')!r}, 'f4', mode='w+', shape=(40,)))",
    )
    outputs_of(
        notebook,
        f"%%ioscope --quiet\nsteps = 0\nfor x, _ in loader:\n    time.sleep(0.008)\n"
        "    model(x).sum().backward()\n    steps += 1\n    print(steps); display(steps)\n"
        f"    torch.save(model.state_dict(), {str(saved)!r})\n"
        "    held.losses[steps - 1] = steps\n"
        f"    if steps == 40:\n        break\nopen({str(log)!r}, 'a').write('done')",
    )
    state = (
        "print(steps, float(model.weight.detach().sum()), float(model.weight.grad.sum()),"
        " loader.num_workers, torch.get_num_threads(), torch.rand(1).item(), held.losses.sum())"
    )
    outputs_of(notebook, "torch.manual_seed(3); held.losses[:] = 7")
    before = ran(notebook, state), saved.read_bytes(), log.read_text()
    outputs_of(notebook, "torch.manual_seed(3)")
    whole = tried(notebook, "tried(whole_cell=True)")
    stand_in = tried(notebook, "tried()")
    assert (ran(notebook, state), saved.read_bytes(), log.read_text()) == before
    assert whole["isolation"][0] == "forked child"
    assert "ran In [" in whole["isolation"][1]
    assert whole["same"] == "identical"
    assert "num_workers=2" in whole["code"] or whole["verdict"] != "faster"
    assert whole["verdict"] != "slower"
    low = max(whole["range"][0], stand_in["range"][0])
    assert low <= min(whole["range"][1], stand_in["range"][1])
    # 40 batches less those of the start, which both arms leave out alike.
    assert {batches for batches, _, _ in whole["trials"]} <= set(range(1, 35))
    assert len({samples for _, samples, _ in whole["trials"]}) == 1
    said = " ".join(whole["notes"])
    assert "they were put back as they were, or removed where they are new: " in said
    assert str(saved) in said
    assert str(tmp_path / "losses") in said
    assert "was dropped" in said


def test_a_cell_that_raises_is_told_with_its_line(notebook: Any) -> None:
    outputs_of(
        notebook,
        "%%ioscope --quiet\nruns = globals().get('runs', 0) + 1\nfor x, _ in loader:\n"
        "    if runs > 1:\n        1 / 0\n    if x[0, 0] > 90:\n        break",
    )
    found = tried(notebook, "tried(whole_cell=True)")
    assert found["error"] == "TrialError"
    assert found["text"] == "arm A failed: ZeroDivisionError: division by zero (line 5 of the cell)"


def test_the_loader_made_in_the_cell_is_replaced_and_no_other(notebook: Any) -> None:
    """The second of three loaders is the main one; kept workers of the kernel are left alone."""
    outputs_of(
        notebook,
        "kept = DataLoader(Sleeping(24, 0.001), batch_size=3, num_workers=1,\n"
        "    persistent_workers=True, multiprocessing_context='fork')\n"
        "list(kept); pids = [w.pid for w in kept._iterator._workers]",
    )
    outputs_of(
        notebook,
        "%%ioscope --quiet\nfor _ in range(2):\n    checked = sum(len(y) for _, y in kept)\n"
        "    made = DataLoader(Sleeping(320, 0.001), batch_size=8, shuffle=True)\n"
        "    for x, y in made:\n        assert len(y) == 8\n    del made\n"
        "assert checked == 24",
    )
    found = tried(notebook, "tried(['workers=1'], whole_cell=True)")
    assert all(samples == 8 * batches for batches, samples, _ in found["trials"]), found
    assert found["same"] == "identical"
    text = "print(len(list(kept)), pids == [w.pid for w in kept._iterator._workers])"
    assert ran(notebook, text).split() == ["8", "True"]


def test_a_short_loop_is_timed_as_a_whole(notebook: Any) -> None:
    outputs_of(
        notebook,
        "%%ioscope --quiet\nfor n, (x, _) in enumerate(loader):\n    if n == 4:\n        break",
    )
    found = tried(notebook, "tried(budget_s=3, whole_cell=True)")
    assert {batches for batches, _, _ in found["trials"]} == {5}
    assert any("whole" in note for note in found["notes"])


def test_shell_lines_and_programs_that_write_to_the_output_run_in_a_copy(notebook: Any) -> None:
    outputs_of(
        notebook,
        "%%ioscope --quiet\nimport subprocess, sys\n!true\n"
        "subprocess.run(['echo', sys.stdout.encoding.lower()])\n"
        "for n, (x, _) in enumerate(loader):\n    if n == 4:\n        break",
    )
    found = tried(notebook, "tried(budget_s=3, whole_cell=True)")
    assert any("starts" in note and "echo" in note for note in found["notes"]), found


def test_the_public_call_and_the_magic_take_a_loader_of_the_cell(notebook: Any) -> None:
    outputs_of(
        notebook,
        "%%ioscope --quiet\nfor n, (x, _) in enumerate(loader):\n    if n == 4:\n        break",
    )
    line = "%ioscope compare loader --toggles workers=2 --budget 3 --whole-cell"
    found = outputs_of(notebook, line)
    shown = [content["data"]["text/plain"] for _, content, _ in found if "data" in content]
    assert "Every trial is the cell itself" in shown[0]
    text = ran(
        notebook,
        "try:\n    ioscope.compare(DataLoader(Sleeping()), toggles=['workers'], whole_cell=True)\n"
        "except ioscope.InputError as error:\n    print(error)",
    )
    assert "was not iterated in the recorded cell" in text


def shell(**variables: Any) -> Any:
    return SimpleNamespace(
        user_ns=variables, compile=SimpleNamespace(flags=0), transform_cell=lambda text: text
    )


def recorded(source: str) -> Any:
    return builders.without(builders.profile(), cell=Cell(3, source))


def test_without_a_recorded_cell_it_says_what_to_do() -> None:
    with pytest.raises(InputError, match="put %%ioscope on the cell"):
        cell_of(builders.without(builders.profile(), cell=None), 0, shell())
    with pytest.raises(InputError, match="put %%ioscope on the cell"):
        cell_of(recorded("pass"), 0, None)


def test_cells_that_a_copy_of_the_kernel_cannot_run_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cell_of(recorded("x = 1"), 0, shell()).name == "In [3]"
    with pytest.raises(TrialError, match="awaits outside of functions"):
        cell_of(recorded("await x"), 0, shell())
    with pytest.raises(TrialError, match=r"cannot be run again .*invalid syntax"):
        cell_of(recorded("x ="), 0, shell())
    monkeypatch.setattr(cell_code, "no_fork", lambda: "CUDA is initialised in this process")
    with pytest.raises(TrialError, match=r"CUDA is initialised .*; compare without whole_cell"):
        cell_of(recorded("x = 1"), 0, shell())


def test_a_cell_with_a_connection_to_a_database_is_told_to_open_it_itself() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        for line in ("db.execute('select 1')", "with db:\n    pass"):
            with pytest.raises(TrialError, match=r"'db' is a connection to SQLite.*open it in the"):
                cell_of(recorded(line), 0, shell(db=database))
        cell_of(recorded("db = 1"), 0, shell(db=database))
        cell_of(recorded("other.execute('select 1')"), 0, shell(db=database))


def test_objects_that_raise_when_looked_at_do_not_matter() -> None:
    def raises(_self: object) -> Any:
        raise RuntimeError("no")

    odd = type("Odd", (), {"__class__": property(raises)})()
    variables = {"odd": odd, "lazy": torch.nn.LazyLinear(2)}
    assert cell_of(recorded("odd.a = lazy[0] = 1"), 0, shell(**variables)).name == "In [3]"


def test_threads_that_a_copy_would_miss_are_named() -> None:
    done = threading.Event()

    def waits() -> None:
        done.wait()

    waits.__module__ = "__main__"
    thread = threading.Thread(target=waits, name="feeder")
    thread.start()
    try:
        with pytest.raises(TrialError, match=r"runs threads .*\(feeder\): end them first"):
            cell_of(recorded("x = 1"), 0, shell())
    finally:
        done.set()
        thread.join()
