"""A recorded cell made ready to run once more, or the reason why it cannot."""

from __future__ import annotations

import ast
import inspect
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.isolation import no_fork

_AGAIN = "the cell cannot be run again as a whole: "


@dataclass(frozen=True)
class CellCode:
    """`loader` counts the loaders in the order in which the cell begins to iterate them; it is the
    one that trials replace. `namespace` is the kernel's own: only forked children may use it.
    `threads` is what torch uses in the kernel, 0 without torch; `took_s` the recorded run."""

    name: str
    code: CodeType
    namespace: dict[str, Any]
    loader: int
    threads: int
    took_s: float

    def line_of(self, error: BaseException) -> int:
        """The line of the cell that an exception came through last; 0 for none."""
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.code.co_filename:
                line = trace.tb_lineno
            trace = trace.tb_next
        return line


def cell_of(profile: Profile, loader: int, shell: Any) -> CellCode:
    """The cell of a profile, compiled as the notebook would.

    Raises:
        InputError: no cell was recorded, or there is no notebook.
        TrialError: a copy of this process could not run it; the text says why.
    """
    cell = profile.cell
    if cell is None or not cell.source.strip() or shell is None:
        raise InputError(
            "whole_cell needs the recording of a notebook cell: put %%ioscope on the cell with the "
            "loop, run it, and compare then"
        )
    reason = no_fork() or _unsafe_threads()
    if reason:
        raise TrialError(f"{_AGAIN}{reason}; compare without whole_cell")
    name = f"In [{cell.execution_count}]" if cell.execution_count else "the cell"
    code, tree = _compiled(cell.source, name, shell)
    reason = _database(shell.user_ns, tree)
    if reason:
        raise TrialError(f"{_AGAIN}{reason}; compare without whole_cell")
    torch = loaded("torch")
    return CellCode(
        name=name,
        code=code,
        namespace=shell.user_ns,
        loader=loader,
        threads=torch.get_num_threads() if torch is not None else 0,
        took_s=profile.wall_s,
    )


# The line above what the cell runs; another magic below it must come first.
_MAGIC = re.compile(r"\A\s*(?=%%ioscope)(?!%%ioscope[^\n]*\n\s*%%)")


def _compiled(source: str, name: str, shell: Any) -> tuple[CodeType, ast.AST]:
    flags = int(getattr(shell.compile, "flags", 0)) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        # The shell would take the line off as well, and say that nobody records this cell.
        source = shell.transform_cell(_MAGIC.sub("# ", source))
        code: CodeType = compile(source, f"<{name}>", "exec", flags)
    except (SyntaxError, ValueError) as error:
        raise TrialError(f"{_AGAIN}{error}") from error
    if code.co_flags & inspect.CO_COROUTINE:
        raise TrialError(f"{_AGAIN}it awaits outside of functions; compare without whole_cell")
    return code, ast.parse(source)


def _unsafe_threads() -> str:
    """Threads of the user's own would be missing in a forked copy: whoever waits for them there
    waits for ever."""
    own = [thread.name for thread in threading.enumerate() if _is_users(thread)]
    if not own:
        return ""
    shown = ", ".join(own[:3])
    return f"your program runs threads that a copy of it would not have ({shown}): end them first"


def _is_users(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", "") if target is not None else ""
    if module == "concurrent.futures.thread" and not thread.name.startswith("asyncio"):
        return True
    return module == "__main__" or type(thread).__module__ == "__main__"


def _database(namespace: Mapping[str, Any], tree: ast.AST) -> str:
    """A connection to SQLite that the cell uses: carried into a copy of a process, it may harm the
    database (sqlite.org/howtocorrupt.html, 2.6)."""
    sqlite: Any = loaded("sqlite3")
    if sqlite is None:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            kind = type(namespace.get(node.id))
            if issubclass(kind, (sqlite.Connection, sqlite.Cursor)):
                return (
                    f"{node.id!r} is a connection to SQLite, which a copy of this process cannot "
                    "use: open it in the cell"
                )
    return ""
