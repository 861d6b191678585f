"""What the user's lines call that leaves no frame of its own.

A C function has no Python frame: a stack that stands in `np.fromstring(...)` ends with the user's
line. The names of what such a line calls tell what was going on. They are read from the source,
after the loop; nothing is run or imported.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import sysconfig
from collections.abc import Iterator, Sequence

from jupyter_ioscope.model.observed import DIVIDED, LineCalls
from jupyter_ioscope.model.profile import Cell
from jupyter_ioscope.model.readings import Frame, Stacks

_MOST_FILES = 20
_MOST_LINES = 400
_MOST_BYTES = 1_000_000
_MOST_NAMES = 12
_MOST_TELLING = 24

# Calls that make randomness. A false alarm costs a piece of advice, a miss gives a wrong one.
_CHANCE = ("random.", "numpy.random.", "torch.rand", "torch.bernoulli", "albumentations.")
_REDUCING = (".draft", ".thumbnail")
_CHANCE_METHODS = frozenset(
    ("uniform", "integers", "normal", "standard_normal", "choice", "shuffle", "permutation")
)
_RESIZING = frozenset(("resize", "Resize", "interpolate", "LongestMaxSize", "SmallestMaxSize"))
_LOCKING = frozenset(("Lock", "RLock", "Semaphore", "BoundedSemaphore", "FileLock", "flock",
                      "lockf", "acquire"))  # fmt: skip
# Stands for a read or a seek below `with` of something that has a name: a lock, most likely.
_READ_WITHIN = "with:read"
_READS = frozenset(("seek", "read", "readinto", "readline", "readlines"))


def line_calls(stacks: Stacks | None, cells: Sequence[Cell]) -> tuple[LineCalls, ...]:
    """Calls of the user's lines in which stacks end: names of built-in functions ("open"), of
    what modules give ("numpy.array"), and of methods, whosever they are (".split")."""
    if stacks is None:
        return ()
    lines: dict[str, set[int]] = {}
    for stack in stacks.stacks:
        if stack.frames:
            frame = stacks.frames[stack.frames[-1]]
            if frame.line > 0 and not of_a_library(frame):
                lines.setdefault(frame.file, set()).add(frame.line)
        for index in stack.frames:
            frame = stacks.frames[index]
            if not of_a_library(frame) and frame.file:
                lines.setdefault(frame.file, set())
    sources = {f"In [{cell.execution_count}]": cell.source for cell in cells}
    found: list[LineCalls] = []
    for file in sorted(lines)[:_MOST_FILES]:
        source = sources.get(file) or source_of(file)
        if source and len(found) < _MOST_LINES:
            found += _of_source(file, source, lines[file])
    return tuple(found)


def of_a_library(frame: Frame) -> bool:
    """Whether installed code or the standard library holds this function."""
    if frame.cell:
        return False
    return frame.file.startswith("<") or frame.file.startswith(_library_folders())


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(paths[name] + os.sep for name in names if paths.get(name))


def source_of(file: str) -> str:
    """As Python itself keeps it for tracebacks; a file that was changed since may mislead."""
    try:
        if os.path.getsize(file) > _MOST_BYTES:
            return ""
        if file in linecache.cache:
            return "".join(linecache.getlines(file))
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""


def _of_source(file: str, source: str, wanted: set[int]) -> list[LineCalls]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # a cell may hold IPython's own syntax
        return []
    modules = _imported(tree)
    names: dict[int, list[str]] = {}
    telling: list[str] = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = _name(call.func, modules)
        elif isinstance(call, ast.BinOp) and _divides_by_number(call):
            name = DIVIDED
        else:
            continue
        if _is_telling(name) and name not in telling and len(telling) < _MOST_TELLING:
            telling.append(name)
        lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
        for line in wanted.intersection(lines) if name else ():
            known = names.setdefault(line, [])
            if name not in known and len(known) < _MOST_NAMES:
                known.append(name)
    if any(_reads_within(node) for node in ast.walk(tree)):
        telling.append(_READ_WITHIN)
    found = [LineCalls(file, line, tuple(names[line])) for line in sorted(names)]
    return [LineCalls(file, 0, tuple(telling)), *found] if telling else found


def _is_telling(name: str) -> bool:
    """Whether a call makes randomness, resizes pictures, has them decoded at reduced size, or has
    to do with locks."""
    last = name.rpartition(".")[2]
    if last in _RESIZING or last in _LOCKING:
        return True
    return (
        name in _REDUCING
        or name.startswith(_CHANCE)
        or last in _CHANCE_METHODS
        or last.startswith(("Random", "rand"))
        or last in ("ColorJitter", "AutoAugment", "TrivialAugmentWide")
    )


def _divides_by_number(node: ast.BinOp) -> bool:
    divisor = node.right.value if isinstance(node.right, ast.Constant) else None
    return isinstance(node.op, ast.Div) and isinstance(divisor, int | float)


def _reads_within(node: ast.AST) -> bool:
    """Whether this is `with lock:` (no call, which would open something) around a read."""
    if not isinstance(node, ast.With):
        return False
    if not any(isinstance(row.context_expr, ast.Name | ast.Attribute) for row in node.items):
        return False
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _READS
        for statement in node.body
        for call in ast.walk(statement)
    )


def _imported(tree: ast.AST) -> dict[str, str]:
    """Local name -> full name of what import statements give."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _name(called: ast.expr, modules: dict[str, str]) -> str:
    """`numpy.array` for `np.array`, `.split` for a method of something, "" for the user's own."""
    parts = list(_parts(called))
    if not parts:
        return ""
    root = parts[-1]
    if root in modules:
        return ".".join([modules[root], *reversed(parts[:-1])])
    if len(parts) > 1:
        return f".{parts[0]}"
    return root if hasattr(builtins, root) else ""


def _parts(called: ast.expr) -> Iterator[str]:
    """The names of `a.b.c`, last first; something that is no name counts as an empty root."""
    while isinstance(called, ast.Attribute):
        yield called.attr
        called = called.value
    yield called.id if isinstance(called, ast.Name) else ""
