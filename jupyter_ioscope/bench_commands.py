"""`bench`: what `%ioscope bench` and the command line have in common."""

from __future__ import annotations

import argparse
import os
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchResult
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.units import seconds

if TYPE_CHECKING:
    from jupyter_ioscope.trials.progress import Progress


def add_bench(made: argparse.ArgumentParser) -> None:
    """Options of `bench`."""
    made.add_argument("name", metavar="NAME", nargs="?", help="which bench; without one: the list")
    made.add_argument(
        "target", metavar="TARGET", nargs="?", help="your file, folder, sample, loader or function"
    )
    made.add_argument(
        "--budget", type=float, default=30.0, metavar="S", help="seconds it may take (default 30)"
    )


def run_bench(target: Any, options: argparse.Namespace, line: ProgressLine) -> BenchResult:
    """`line` shows what is under way. Raises as `ioscope.bench` does."""
    from jupyter_ioscope.api import bench

    line.show(
        f"bench {options.name}: ends when the answer is clear, after {seconds(options.budget)} at "
        "the latest, if two ways can be tried by then"
    )
    known = False

    def on_progress(step: Progress) -> None:
        nonlocal known
        first, known = step.state == "running" and not known, known or step.state == "running"
        line.show(step.text, keep=first)

    try:
        return bench(options.name, target, options.budget, on_progress=on_progress)
    finally:
        line.clear()


def listed(options: argparse.Namespace) -> str:
    """The list of benches where the line names none, or no target; else "".

    Raises:
        InputError: the line names a bench that there is not, or one without a target.
    """
    from jupyter_ioscope.benches._bench import all_benches, bench_named

    if options.name is None:
        rows = [
            textwrap.fill(
                f"{bench.title}; TARGET is {bench.takes}",
                width=100,
                initial_indent=f"  {bench.name:<10}",
                subsequent_indent=" " * 12,
            )
            for bench in all_benches()
        ]
        return "\n".join(("bench NAME TARGET, where NAME is one of", *rows))
    if options.target is None:
        raise InputError(f"bench {options.name} needs a target: give "
                         f"{bench_named(options.name).takes}")  # fmt: skip
    return ""


def named_or_path(text: str, namespace: Mapping[str, Any], named: Callable[..., Any]) -> Any:
    """The object that a notebook knows by this name, else the text as a path."""
    first = text.partition(".")[0]
    if first in namespace and not os.path.exists(os.path.expanduser(text)):
        return named(text, namespace)
    if text.isidentifier() and not os.path.exists(text):
        raise InputError(f"this notebook has no {text!r}, and there is no such file: give either")
    return text


def from_command_line(options: argparse.Namespace) -> Any:
    """What FILE.py:NAME names, else the text as a path."""
    from jupyter_ioscope.benches._bench import bench_named
    from jupyter_ioscope.targets import loader_of

    bench = bench_named(options.name)
    path, colon, _ = options.target.rpartition(":")
    if colon and path.endswith(".py"):
        return loader_of(options.target, call=not bench.functions)
    return options.target


def text_of(result: BenchResult) -> str:
    """A bench as text."""
    from jupyter_ioscope.views.benches import bench_text

    return bench_text(result)
