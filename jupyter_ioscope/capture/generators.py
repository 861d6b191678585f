"""Which of the user's functions in the stacks are generators.

A loader written by hand is often a function that yields. A stack does not tell it from any other
function; its source does. It is read after the loop; nothing is run or imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jupyter_ioscope.capture.line_calls import of_a_library, source_of
from jupyter_ioscope.model.profile import Cell, Generator
from jupyter_ioscope.model.readings import Stacks

_MOST_FILES = 20
_MOST = 200

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def generators(stacks: Stacks | None, cells: Sequence[Cell]) -> tuple[Generator, ...]:
    """The user's generators that have a frame in the stacks."""
    if stacks is None:
        return ()
    lines: dict[str, set[int]] = {}
    for frame in stacks.frames:
        if frame.line > 0 and not of_a_library(frame):
            lines.setdefault(frame.file, set()).add(frame.line)
    sources = {f"In [{cell.execution_count}]": cell.source for cell in cells}
    found: list[Generator] = []
    for file in sorted(lines)[:_MOST_FILES]:
        for first, last in _of_source(sources.get(file) or source_of(file)):
            if any(first <= line <= last for line in lines[file]):
                found.append(Generator(file, first, last))
    return tuple(found[:_MOST])


def _of_source(source: str) -> list[tuple[int, int]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # a cell may hold IPython's own syntax
        return []
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, _Function) and any(_is_yield(part) for part in _own(node))
    ]


def _own(function: _Function) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom))
