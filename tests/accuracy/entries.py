"""What the corpus consists of: an entry is one loader in one variant, with what is known of it."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_ioscope.errors import InputError

HEALTHY = "not_loader_bound"
CASE, BLIND = "case", "blind"  # kinds of folders: a user's own, and tests/accuracy/blind


@dataclass(frozen=True)
class Entry:
    """One loader to profile.

    `source` is the path of a file with `make_loader()`, or `module:name:severity` of a loader of
    this package. `causes` are the labels any of which is right; a healthy loader has the one label
    `not_loader_bound`. `advice` holds lower-case words one of which good advice contains, empty
    where nobody says. `shares` are known parts of the loop by cause, for mixed causes. `gone` are
    the labels of what was repaired in this variant: naming one of them is an error for certain.

    Milder severities add a step to each batch, `step` times as long as a batch takes without one
    (`batch_s`, from the run of the severest).
    """

    name: str
    group: str  # "single", "healthy", "mixed", or a kind of folder and "slow" or "fixed"
    source: str
    causes: tuple[str, ...]
    severity: str = ""
    advice: tuple[str, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()
    gone: tuple[str, ...] = ()
    step: float = 0.0
    batch_s: float = 0.0
    fresh: bool = False  # the loader is made anew for every epoch

    @property
    def healthy(self) -> bool:
        return self.causes == (HEALTHY,)

    @property
    def repaired(self) -> bool:
        """The repaired variant of a loader with a trouble."""
        return self.group.endswith(" fixed")

    @property
    def case(self) -> str:
        """The folder's name of a loader in a file; empty for one of this package."""
        return Path(self.source).parent.name if self.source.endswith(".py") else ""

    @property
    def file_name(self) -> str:
        return self.name.replace("/", "~").replace(" ", "_")

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Entry:
        """The entry of a result file.

        Raises:
            InputError: the content is no entry.
        """
        try:
            return cls(
                **{
                    **content,
                    "causes": tuple(content["causes"]),
                    "advice": tuple(content["advice"]),
                    "shares": tuple((name, share) for name, share in content["shares"]),
                    "gone": tuple(content.get("gone", ())),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"no entry of the corpus: {error}") from error


def external(folder: Path, fresh: bool = False, kind: str = CASE) -> Iterator[Entry]:
    """The cases in the folders below `folder`: `slow.py` with its labels, `fixed.py` as healthy.
    `kind` names their groups; the names of cases that are no user's own begin with it.

    Raises:
        InputError: there is no such folder, or a case without a label.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} with cases")
    labels = _json(folder / "labels.json") or {}
    for case in sorted(path.parent for path in folder.glob("*/slow.py")):
        causes = _labels(case, labels)
        words = _changed_names(case)
        again = "@fresh" if fresh else ""
        slow = str(case / "slow.py")
        stem = case.name if kind == CASE else f"{kind}/{case.name}"
        yield Entry(f"{stem}/slow{again}", f"{kind} slow", slow, causes, advice=words, fresh=fresh)
        fixed = case / "fixed.py"
        if fixed.is_file():
            gone = tuple(cause for cause in causes if cause != HEALTHY)
            name = f"{stem}/fixed{again}"
            yield Entry(name, f"{kind} fixed", str(fixed), (HEALTHY,), gone=gone, fresh=fresh)


def _labels(case: Path, labels: dict[str, Any]) -> tuple[str, ...]:
    """From a `labels.json` beside the cases (by folder name or its number), or inside the case."""
    for key in (case.name, case.name.partition("-")[0]):
        if key in labels:
            return tuple(labels[key])
    own = _json(case / "labels.json")
    if own:
        return tuple(own["labels"] if isinstance(own, dict) else own)
    about = _json(case / "case.json") or {}
    if "cause" in about:
        return (str(about["cause"]),)
    raise InputError(f"nothing says what is wrong with {case.name}: no labels.json names it")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _changed_names(case: Path) -> tuple[str, ...]:
    """Names of other people's (attributes, keyword arguments, imports) that the fix uses and the
    slow variant does not: advice that contains one of them names the change."""
    slow, fixed = case / "slow.py", case / "fixed.py"
    if not fixed.is_file():
        return ()
    return tuple(sorted(_names(fixed) - _names(slow)))


def _names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            names.add(node.attr.lower())
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg.lower())
            if isinstance(node.value, ast.Constant):
                names.add(f"{node.arg}={node.value.value!s}".lower())
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name.lower() for alias in node.names}
    return {name for name in names if len(name) > 3}
