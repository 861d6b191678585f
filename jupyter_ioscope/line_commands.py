"""`%ioscope NAME ...` in a notebook: the commands on the last profile, on loaders that the notebook
knows by name, and on storage."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from jupyter_ioscope import bench_commands, commands, storage_commands
from jupyter_ioscope.api import load
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.history import history
from jupyter_ioscope.model.history import History
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.recording import Recording, last_recording
from jupyter_ioscope.terminal import Parser, say


class _Parser(Parser):
    """Raises for a mistake instead of ending the process."""

    def error(self, message: str) -> Any:
        raise InputError(f"{self.prog}: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        raise _Helped


class _Helped(Exception):
    """`--help` was answered."""


def names() -> tuple[str, ...]:
    return tuple(_COMMANDS)


def run(line: str, namespace: Mapping[str, Any]) -> Any:
    """The result of one line; None where it only asked for help.

    Raises:
        InputError: the line has a mistake, or names something that is not there.
        TrialError: as `ioscope.compare` and `ioscope.tune` do.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"%ioscope {line}: {error}") from error
    name, *rest = words
    add, call = _COMMANDS[name]
    parser = _Parser(prog=f"%ioscope {name}")
    add(parser)
    try:
        options = parser.parse_args(rest)
    except _Helped:
        return None
    return call(options, namespace)


def _add_report(made: argparse.ArgumentParser) -> None:
    made.description = "Show the last profile again."
    made.add_argument(
        "--html", metavar="PATH", help="write it as one page that needs no network, instead"
    )


def _report(options: argparse.Namespace, _namespace: Mapping[str, Any]) -> None:
    last = last_recording()
    if options.html is None:
        last.show()
    else:
        commands.write_report(last, options.html)


def _add_load(made: argparse.ArgumentParser) -> None:
    made.description = "Show a saved profile: also as a value, with `p = %ioscope load PATH`."
    made.add_argument("file", help="a file that --save, p.save() or record wrote")


def _load(options: argparse.Namespace, _namespace: Mapping[str, Any]) -> Recording:
    return load(options.file)


def _add_history(made: argparse.ArgumentParser) -> None:
    made.description = (
        "The cells that were profiled in this kernel, in the order in which they ran."
    )


def _history(_options: argparse.Namespace, _namespace: Mapping[str, Any]) -> History:
    return history()


def _add_compare(made: argparse.ArgumentParser) -> None:
    commands.add_compare(made)
    made.add_argument(
        "--whole-cell",
        action="store_true",
        help="every trial runs the last cell with %%%%ioscope itself, in a copy of this process",
    )
    made.epilog = (
        "Of the loader that the last cell with %%ioscope iterated, the step is the one recorded "
        "there, unless --step gives another, and the result says how far the prediction missed."
    )


def _compare(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Any:
    other = _named(options.b, namespace) if options.b else None
    loader, last = _named(options.a, namespace), None
    if options.toggles and other is None and options.step is None and not options.whole_cell:
        last = _last_of(loader, namespace)
    return commands.run_compare(loader, other, options, ProgressLine.of_cell(), last)


def _tune(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Any:
    loader = _named(options.a, namespace)
    last = _last_of(loader, namespace)
    return commands.run_tune(loader, options, ProgressLine.of_cell(), last)


def _last_of(loader: Any, namespace: Mapping[str, Any]) -> Recording | None:
    """The last recording of this notebook, if its main loader is this one as it is now."""
    last = namespace.get("_ioscope")
    recorded = last.main_loader if isinstance(last, Recording) else None
    if recorded is None or getattr(recorded, "dataset", None) is not getattr(loader, "dataset", 0):
        return None
    from jupyter_ioscope.trials.spec import settings_of, spec_of

    try:
        then, now = spec_of(recorded), spec_of(loader)
    except InputError:
        return None
    parts = ("sampler", "batch_sampler", "collate_fn", "worker_init_fn", "generator")
    same = all(getattr(then, part) is getattr(now, part) for part in parts)
    return last if same and settings_of(then) == settings_of(now) else None


def _named(text: str, namespace: Mapping[str, Any]) -> Any:
    """The object that `loader` or `data.train` names; attributes only, nothing is evaluated."""
    first, *rest = text.split(".")
    if first not in namespace:
        raise InputError(f"this notebook has no {first!r}: give the name of a loader")
    value = namespace[first]
    for name in rest:
        try:
            value = getattr(value, name)
        except Exception as error:  # a property of the user's may raise anything
            raise InputError(f"{text!r}: {type(error).__name__}: {error}") from error
    return value


def _storage(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Any:
    return storage_commands.run_storage(options, _last_profile(namespace), ProgressLine.of_cell())


def _limits(_options: argparse.Namespace, namespace: Mapping[str, Any]) -> Any:
    return storage_commands.run_limits(_last_profile(namespace))


def _baseline(options: argparse.Namespace, _namespace: Mapping[str, Any]) -> Any:
    return storage_commands.run_baseline(options, ProgressLine.of_cell())


def _bench(options: argparse.Namespace, namespace: Mapping[str, Any]) -> Any:
    known = bench_commands.listed(options)
    if known:
        say(known)
        return None
    target = bench_commands.named_or_path(options.target, namespace, _named)
    return bench_commands.run_bench(target, options, ProgressLine.of_cell())


def _last_profile(namespace: Mapping[str, Any]) -> Profile | None:
    """The last profile of this notebook: results then say what they mean for its loader."""
    last = namespace.get("_ioscope")
    return last.profile if isinstance(last, Recording) else None


_COMMANDS = {
    "report": (_add_report, _report),
    "load": (_add_load, _load),
    "history": (_add_history, _history),
    "compare": (_add_compare, _compare),
    "tune": (commands.add_tune, _tune),
    "storage": (storage_commands.add_storage, _storage),
    "limits": (storage_commands.add_limits, _limits),
    "baseline": (storage_commands.add_baseline, _baseline),
    "bench": (bench_commands.add_bench, _bench),
}
