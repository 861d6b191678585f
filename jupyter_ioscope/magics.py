"""`%%ioscope`: profile a cell without changing how it runs.

The line `%%ioscope` is taken off the cell before it is compiled, and the recording starts and
stops in the shell's own events around the cell. So the cell runs exactly as it would have run:
same traceback with the same line numbers, same top-level await, same last expression.
"""

from __future__ import annotations

import argparse
import ast
import logging
import sys
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError

from jupyter_ioscope import debugger
from jupyter_ioscope.api import Recording
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.interrupts import held_interrupts
from jupyter_ioscope.errors import InputError, IoscopeError
from jupyter_ioscope.history import remember
from jupyter_ioscope.live import LiveLine
from jupyter_ioscope.live_panel import LivePanel
from jupyter_ioscope.magic_line import (
    MAGIC,
    VARIABLE,
    expander,
    parse,
    parser,
    split,
    strip_magic,
    usable,
)
from jupyter_ioscope.model.bench import BenchResult
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.history import History
from jupyter_ioscope.model.parts import Parts
from jupyter_ioscope.model.profile import Cell
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.terminal import say

log = logging.getLogger("ioscope")


class Magic:
    """Everything ioscope puts into one shell, so that it can be taken out again."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._info: Any = None
        self._recording: Recording | None = None
        self._options: argparse.Namespace | None = None
        self._live: LiveLine | None = None
        self._panel = LivePanel.of_kernel(shell)
        self._expand = expander(shell.user_ns)
        self._filled: dict[str, str] = {}  # lines of the cell to come: what they name is asked once
        self._overlooked = False  # a line was taken off a cell that nobody records

    def strip(self, lines: list[str]) -> list[str]:
        """What the shell calls for every cell, and other cell magics for what they run."""
        stripped = strip_magic(lines, self._fill)
        self._overlooked = self._overlooked or stripped is not lines
        return stripped

    def _fill(self, line: str) -> str:
        if line not in self._filled:
            self._filled[line] = self._expand(line)
        return self._filled[line]

    def pre_run_cell(self, info: Any) -> None:
        """Start recording when the cell that is about to run asks for it."""
        if self._recording is not None:
            return
        self._overlooked = False
        found = split(getattr(info, "raw_cell", "") or "")
        options = usable(found[0], self._fill) if found is not None else None
        self._filled.clear()
        if options is None:
            return
        self._info = info
        self._begin(options)

    def _begin(self, options: argparse.Namespace) -> None:
        recording = Recording(options.capture, CellMap.from_shell(self.shell))
        quiet = options.quiet or not options.live
        live = None if quiet else LiveLine(self.shell, recording)
        with held_interrupts() as held:
            try:
                recording.start()
            except IoscopeError as error:
                say(f"ioscope does not record this cell: {error}")
                return
            except Exception as ours:
                log.warning("ioscope could not start", exc_info=True)
                say(f"ioscope does not record this cell ({type(ours).__name__}: {ours})")
                return
            self._options, self._recording, self._live = options, recording, live
            if debugger.is_on(self.shell):
                say(debugger.HOLDS_WORKERS)  # now: a cell that hangs has no end to say it at
            if live is not None:
                live.start()
            if held.interrupted:
                # IPython swallows what its events raise, and would run the cell all the same.
                held.forget()
                self._drop()
                self.shell.ast_transformers.append(_InterruptCell(self.shell.ast_transformers))

    def post_run_cell(self, result: Any) -> None:
        """Stop, keep the profile, show the report."""
        _InterruptCell.withdraw(self.shell.ast_transformers)  # the cell was not even parsed
        recording = self._recording
        if recording is None and self._overlooked:
            self._overlooked = False
            say(f"ioscope did not record this cell: put {MAGIC} above its other cell magics")
        if recording is None or not self._mine(result):
            return
        if result is None:  # an exception is on its way through the kernel
            self._end(sys.exc_info()[1], self._cell())
            return
        unread = getattr(result, "error_before_exec", None)
        if unread is not None and recording.progress()[0] == 0:
            self._drop()  # a mistake in the cell's text: nothing ran
            return
        self._end(getattr(result, "error_in_exec", None) or unread, self._cell())

    def _mine(self, result: Any) -> bool:
        """Whether this is the end of the recorded cell, not of one that it ran itself."""
        info = getattr(result, "info", None)
        if info is None or self._info is None:
            return True
        return info is self._info or info.raw_cell == self._info.raw_cell

    def _cell(self) -> Cell:
        # The counter has moved on by the time the cell has ended, unless nothing is counted.
        count = max(0, int(getattr(self.shell, "execution_count", 1)) - 1)
        return Cell(count, str(getattr(self._info, "raw_cell", "") or ""))

    def _end(self, error: BaseException | None, cell: Cell | None) -> None:
        recording, options, live = self._recording, self._options, self._live
        if recording is None or options is None:
            return
        with held_interrupts() as held:
            held.error_told = error is not None
            self._recording = self._options = self._live = self._info = None
            try:
                recording.stop(error, cell)
            finally:
                if live is not None:
                    live.end(_recorded(recording))
            held.forget()  # the cell that it was meant for has ended
            try:
                recording.profile  # noqa: B018 - says why there is none
            except IoscopeError as problem:
                say(f"ioscope: {problem}")
                return
            recording.variable = VARIABLE
            self.shell.user_ns[VARIABLE] = recording
        if options.save:
            self._save(recording, options.save)
        if not options.quiet:
            self._show(recording)
        remember(recording)

    def _save(self, recording: Recording, path: str) -> None:
        try:
            recording.save(path)
        except IoscopeError as problem:
            say(f"ioscope: {problem}")
        except Exception as problem:
            log.warning("ioscope could not save the profile", exc_info=True)
            say(f"ioscope could not save the profile ({type(problem).__name__}: {problem})")

    def _drop(self) -> None:
        """End a recording that nobody needs: no report, and the last profile stays."""
        recording, live = self._recording, self._live
        self._recording = self._options = self._live = self._info = None
        if recording is None:
            return
        recording.stop()
        if live is not None:
            live.end("ioscope recorded nothing: the cell did not run")

    def close(self) -> None:
        """End what is being recorded and shown, for when the extension is unloaded."""
        if self._panel is not None:
            self._panel.leave()
        self._end(None, None)

    def _show(self, recording: Recording) -> None:
        try:
            recording.show()
        except KeyboardInterrupt:
            say(f"ioscope was interrupted before it drew the report; the profile is in {VARIABLE}")
        except Exception as problem:
            log.warning("ioscope could not draw the report", exc_info=True)
            say(
                f"ioscope could not draw the report ({type(problem).__name__}: {problem}); "
                f"the profile is in {VARIABLE}"
            )

    def cell_magic(self, line: str, cell: str) -> None:
        """Profile a cell; also reached for `--help` and for mistakes on the line."""
        options = self._checked(line)
        if options is None:
            return
        if self._recording is not None:
            raise UsageError("ioscope is already recording this cell")
        self._info = None
        self._begin(options)
        result = self.shell.run_cell(cell)
        self._end(result.error_in_exec or result.error_before_exec, Cell(0, cell))

    def line_magic(self, line: str) -> Any:
        """`%ioscope` alone: help; with a word: a command."""
        from jupyter_ioscope import line_commands

        word, _, _ = line.strip().partition(" ")
        if word not in line_commands.names():
            known = ", ".join(line_commands.names())
            if word and word not in ("-h", "--help"):
                raise UsageError(f"%ioscope knows {known}; got {word!r}")
            say(f"{parser().format_help()}\n%ioscope NAME runs a command: {known}.")
            say("Each lists its options: %ioscope compare --help")
            return None
        try:
            return line_commands.run(line, self.shell.user_ns)
        except IoscopeError as error:
            raise UsageError(str(error)) from None

    def _checked(self, line: str) -> argparse.Namespace | None:
        try:
            options = parse(line)
        except InputError as error:
            raise UsageError(str(error)) from None
        if options.help:
            say(parser().format_help())
            return None
        return options


class _InterruptCell(ast.NodeTransformer):
    """Lets the next cell begin with the interrupt that came before it, once."""

    def __init__(self, transformers: list[ast.NodeTransformer]) -> None:
        self._transformers = transformers

    @classmethod
    def withdraw(cls, transformers: list[ast.NodeTransformer]) -> None:
        transformers[:] = [item for item in transformers if not isinstance(item, cls)]

    def visit(self, node: ast.AST) -> ast.AST:
        self.withdraw(self._transformers)
        assert isinstance(node, ast.Module)
        node.body[:] = ast.parse("raise KeyboardInterrupt").body
        return node


def _recorded(recording: Recording) -> str:
    try:
        profile = recording.profile
    except IoscopeError:
        return "ioscope recorded nothing"
    count = len(profile.batches)
    batches = "batch" if count == 1 else "batches"
    return f"ioscope recorded {count:,} {batches} in {profile.wall_s:.1f} s"


_loaded: dict[int, Magic] = {}


def _formatters(shell: Any) -> list[tuple[type, Any, Any]]:
    """How the shell shows what commands return: as a table where it can, as text elsewhere."""
    from jupyter_ioscope import storage_commands
    from jupyter_ioscope.views.benches import bench_html, bench_text
    from jupyter_ioscope.views.history import history_html, history_text
    from jupyter_ioscope.views.html import comparison_html
    from jupyter_ioscope.views.parts import parts_html, parts_text
    from jupyter_ioscope.views.text import comparison_text
    from jupyter_ioscope.views.tuning import tuning_html, tuning_text

    made = shell.display_formatter.formatters
    rows: list[tuple[type, Any, Any]] = []
    shown: tuple[tuple[type, Any, Any], ...] = (
        (Comparison, comparison_html, comparison_text),
        (Tuning, tuning_html, tuning_text),
        (Parts, parts_html, parts_text),
        (History, history_html, history_text),
        (BenchResult, bench_html, bench_text),
        *storage_commands.forms(),
    )
    for kind, html, text in shown:
        rows.append((kind, made["text/html"], html))
        rows.append((kind, made["text/plain"], _printed(text)))
    return rows


def _printed(text: Callable[[Any], str]) -> Callable[[Any, Any, bool], None]:
    return lambda value, printer, _cycle: printer.text(text(value))


def load(shell: Any) -> None:
    """Put the magic into a shell. Loading twice changes nothing."""
    if id(shell) in _loaded:
        return
    for kind, formatter, draw in _formatters(shell):
        formatter.for_type(kind, draw)
    magic = Magic(shell)
    _loaded[id(shell)] = magic
    shell.register_magic_function(magic.cell_magic, "cell", "ioscope")
    shell.register_magic_function(magic.line_magic, "line", "ioscope")
    shell.input_transformers_cleanup.insert(0, magic.strip)
    shell.events.register("pre_run_cell", magic.pre_run_cell)
    shell.events.register("post_run_cell", magic.post_run_cell)


def unload(shell: Any) -> None:
    """Take everything out of a shell again."""
    magic = _loaded.pop(id(shell), None)
    if magic is None:
        return
    magic.close()
    for kind, formatter, _ in _formatters(shell):
        formatter.pop(kind, None)
    shell.magics_manager.magics["cell"].pop("ioscope", None)
    shell.magics_manager.magics["line"].pop("ioscope", None)
    if magic.strip in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(magic.strip)
    shell.events.unregister("pre_run_cell", magic.pre_run_cell)
    shell.events.unregister("post_run_cell", magic.post_run_cell)
