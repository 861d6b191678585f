"""A job: run a recorded cell once more in a copy of the kernel, with the arm's loader."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
from typing import Any, NoReturn

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.cell_code import CellCode
from jupyter_ioscope.trials.cell_loader import CellLoop, Swap
from jupyter_ioscope.trials.child import failure, hold
from jupyter_ioscope.trials.connections import advice
from jupyter_ioscope.trials.counting import seed_all
from jupyter_ioscope.trials.effects import NoteEffects
from jupyter_ioscope.trials.page_cache import LearnFiles, mapped_files
from jupyter_ioscope.trials.tally import Plan


def run_cell(
    emit: Any,
    stop: Any,
    folder: str,
    cell: CellCode,
    swap: Swap,
    plan: Plan,
    learn: bool,
    threads: int,
    notes: str,
) -> dict[str, Any]:
    """Run the cell until the plan is fulfilled, or to its end.

    What it does outside of this process is noted in the folder `notes`. The process ends in the
    middle of the cell as soon as enough was timed: nothing of the cell runs after that.
    """
    NoteEffects(notes, (folder, os.path.dirname(folder))).install()
    files = LearnFiles(f"{folder}/opened") if learn else None
    if files is not None:
        files.install()
    output = _Output()
    output.install()
    if threads:
        loaded_torch().set_num_threads(threads)
    seed_all(plan.seed)

    def enough(done: CellLoop) -> NoReturn:
        emit({"kind": "result", "result": _result(done, files, output)})
        hold()
        os._exit(0)

    loop = CellLoop(emit, plan, cell.loader, swap, enough)
    loop.install()
    try:
        exec(cell.code, cell.namespace)
    except SystemExit:
        pass
    except BaseException as error:
        emit(_told(error, cell))
        hold()
        os._exit(0)
    if loop.tally is None:
        raise LookupError("the cell did not iterate the loader that was recorded")
    return _result(loop, files, output)


def _result(loop: CellLoop, files: LearnFiles | None, output: _Output) -> dict[str, Any]:
    assert loop.tally is not None
    found = files.found() | mapped_files(loop.workers()) if files is not None else set()
    loop.close()
    result = loop.tally.result()
    if files is not None:
        result["files"] = sorted(found)
    torch = loaded("torch")
    gpu = torch is not None and bool(torch.cuda.is_initialized())
    return result | {"lines": output.lines, "displays": output.displays, "gpu": gpu}


def _told(error: BaseException, cell: CellCode) -> dict[str, Any]:
    """The cell's own exception, with the line of the cell and what to do about it."""
    message = failure(error)
    line, what = cell.line_of(error), advice(error)
    if line:
        message["text"] += f" (line {line} of the cell)"
    if what:
        message["text"] += f": {what}"
    return message


def loaded_torch() -> Any:
    import torch

    return torch


class _Output(io.TextIOBase):
    """Takes what the cell prints and displays, and counts it: a copy of the kernel would send it to
    the user's page."""

    def __init__(self) -> None:
        self.lines = self.displays = 0

    def install(self) -> None:
        sys.stdout = sys.stderr = self
        builtins.input = _no_keyboard
        with contextlib.suppress(ImportError, AttributeError):
            from jupyter_client.session import Session

            Session.send = self._dropped  # type: ignore[method-assign]

    def _dropped(self, *arguments: Any, **named: Any) -> None:
        kind = arguments[1] if len(arguments) > 1 else named.get("msg_or_type")
        self.displays += kind in ("display_data", "execute_result")

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Where programs that the cell starts write: nowhere, see `child`."""
        return 1

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


def _no_keyboard(*_arguments: Any) -> NoReturn:
    raise EOFError("a run of the cell has no keyboard")


def parallel_work(emit: Any, stop: Any, folder: str, threads: int) -> dict[str, Any]:
    """A job: whether torch's threads work in a copy of the kernel. Where they do not, it hangs."""
    torch = loaded_torch()
    torch.set_num_threads(threads)
    made = torch.nn.functional.linear(torch.ones(512, 512), torch.ones(512, 512))
    return {"sum": float(torch.ones(2_000_000).exp().sum()) + float(made.sum())}
