"""What `%ioscope NAME ...` and `python -m jupyter_ioscope NAME ...` have in common: the commands on
loaders and reports, their options, and their results as text or JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from jupyter_ioscope import exports
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.under_way import UnderWay

# Exit codes of commands that come to a verdict.
FOUND, NOTHING_BETTER = 0, 3


def add_compare(made: argparse.ArgumentParser) -> None:
    """Options of `compare`."""
    made.add_argument("a", metavar="LOADER", help="arm A")
    made.add_argument("b", metavar="OTHER", nargs="?", help="arm B: another loader")
    made.add_argument(
        "--toggles",
        metavar="NAME,NAME",
        help="arm B is arm A with these switched on; a number may follow: workers=8",
    )
    made.add_argument("--cache", choices=("warm", "cold"), default="warm", help="page cache")
    made.add_argument(
        "--step", type=float, metavar="S", help="seconds that your loop spends a batch (default 0)"
    )
    made.set_defaults(whole_cell=False)
    _add_common(made)


def add_tune(made: argparse.ArgumentParser) -> None:
    """Options of `tune`."""
    made.add_argument("a", metavar="LOADER", help="the loader to search workers x prefetch for")
    _add_common(made)


def _add_common(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--budget", type=float, default=60.0, metavar="S", help="seconds it may take (default 60)"
    )


def run_compare(
    a: Any,
    b: Any,
    options: argparse.Namespace,
    line: ProgressLine | None = None,
    recorded: Recording | None = None,
) -> Comparison:
    """`line` shows what is under way, on the terminal if none is given. `recorded`: the loader is
    the main one of this recording, and its step is wanted. Raises as `ioscope.compare` does."""
    from jupyter_ioscope.api import compare

    toggles = toggles_of(options)
    with UnderWay(line or ProgressLine.of_terminal()) as under_way:
        if recorded is not None:
            return recorded.compare(
                toggles, options.cache, options.budget, under_way.on_progress, under_way.cancel
            )
        return compare(
            a,
            b,
            toggles,
            cache=options.cache,
            budget_s=options.budget,
            on_progress=under_way.on_progress,
            cancel=under_way.cancel,
            step_s=options.step or 0.0,
            whole_cell=options.whole_cell,
        )


def toggles_of(options: argparse.Namespace) -> tuple[str, ...]:
    """The names after `--toggles`."""
    return tuple(filter(None, (part.strip() for part in (options.toggles or "").split(","))))


def run_tune(
    loader: Any,
    options: argparse.Namespace,
    line: ProgressLine | None = None,
    recorded: Recording | None = None,
) -> Tuning:
    """As `run_compare`. Raises as `ioscope.tune` does."""
    from jupyter_ioscope.api import tune

    with UnderWay(line or ProgressLine.of_terminal()) as under_way:
        if recorded is not None:
            return recorded.tune(options.budget, under_way.on_progress, under_way.cancel)
        return tune(
            loader,
            budget_s=options.budget,
            on_progress=under_way.on_progress,
            cancel=under_way.cancel,
        )


def write_report(recording: Recording, path: str, *profiles: str) -> None:
    """Write the report as a page; `profiles` are files that it must not replace.

    Raises:
        InputError, ProfileFileError: as `exports.write_page` does.
    """
    from jupyter_ioscope.views.page import page

    tried = tuple(recording.results)
    html = page(recording.profile, recording.diagnosis, recording.offers, tried)
    exports.write_page(path, html, *profiles)


def text_of(result: Comparison | Tuning) -> str:
    from jupyter_ioscope.views.text import comparison_text
    from jupyter_ioscope.views.tuning import tuning_text

    return tuning_text(result) if isinstance(result, Tuning) else comparison_text(result)


def code_of(result: Comparison | Tuning) -> int:
    """0 when something better was found, 3 when not."""
    better = result.changed if isinstance(result, Tuning) else result.verdict == "faster"
    return FOUND if better else NOTHING_BETTER


def as_json(value: Any) -> str:
    return json.dumps(plain(value), indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    """Frozen values as what JSON knows; what is not a number becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
