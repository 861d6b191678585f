"""`storage`, `limits` and `baseline`: what `%ioscope NAME` and the command line have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import Baseline, BaselineCheck, Limits, StorageCheck
from jupyter_ioscope.progress_line import ProgressLine

if TYPE_CHECKING:
    from jupyter_ioscope.model.profile import Profile

FILE = "ioscope-baseline.json"
# Exit codes; bad input, and a place that could not be judged, give 2.
GOOD, BAD, NOT_JUDGED = 0, 1, 2


def add_storage(made: argparse.ArgumentParser) -> None:
    """Options of `storage`."""
    made.add_argument("path", metavar="PATH", help="a folder (measured in a private folder) or a "
                      "file (which is only read)")  # fmt: skip
    made.add_argument("--thorough", action="store_true", help="about 20 s and 1 GiB written")
    made.add_argument(
        "--silence", type=float, metavar="S", help="give a device up that is silent so long"
    )


def add_limits(made: argparse.ArgumentParser) -> None:
    """`limits` has no options."""


def add_baseline(made: argparse.ArgumentParser) -> None:
    """Options of `baseline`."""
    made.add_argument("action", choices=("save", "check"), help="measure and save, or compare")
    made.add_argument("path", metavar="PATH", help="the folder whose storage is measured")
    made.add_argument("named", metavar="FILE", nargs="?", help=f"the baseline (default {FILE})")
    made.add_argument("--file", metavar="FILE", help="the same")
    made.add_argument("--engine", choices=("fio", "own"), default="", help="default: fio if there")
    made.add_argument("--seconds", type=float, default=0.5, metavar="S", help="of one run of a job")
    made.add_argument("--repeats", type=int, default=5, metavar="N", help="runs of each job")
    made.add_argument(
        "--block-trace", action="store_true",
        help="latencies of the device itself, too; takes rights on tracefs (root)",
    )  # fmt: skip
    made.add_argument("--size", type=int, default=256, metavar="MIB", help="size of the test file")
    made.add_argument(
        "--p99", default="12,15", metavar="MS,MS",
        help="99th percentile of small random requests that warns, and that fails (default 12,15)",
    )  # fmt: skip
    made.add_argument(
        "--loss", default="5,8", metavar="%,%",
        help="loss of bandwidth that warns, and that fails (default 5,8)",
    )  # fmt: skip


def run_storage(
    options: argparse.Namespace, profile: Profile | None, line: ProgressLine | None = None
) -> StorageCheck:
    """`line` shows how far a thorough check is. Raises as `ioscope.check_storage` does."""
    from jupyter_ioscope.api import check_storage

    on_step = line.show if line is not None and options.thorough else None
    how: dict[str, Any] = {"silence_s": options.silence, "on_step": on_step}
    try:
        return check_storage(options.path, quick=not options.thorough, profile=profile, **how)
    finally:
        if line is not None:
            line.clear()


def run_limits(profile: Profile | None) -> Limits:
    """Reads the limits of this process."""
    from jupyter_ioscope.api import limits

    return limits(profile)


def run_baseline(
    options: argparse.Namespace, line: ProgressLine | None = None
) -> Baseline | BaselineCheck:
    """`line` shows how long it takes and what is under way. Raises as `ioscope.save_baseline` and
    `ioscope.check_baseline` do."""
    from jupyter_ioscope import api

    how: dict[str, Any] = {
        "on_step": line.show if line is not None else None,
        "seconds": options.seconds,
        "repeats": options.repeats,
        "size_bytes": options.size << 20,
        "engine": options.engine,
        "block_trace": options.block_trace,
    }
    try:
        return _baseline(api, options, how)
    finally:
        if line is not None:
            line.clear()


def _baseline(
    api: ModuleType, options: argparse.Namespace, how: dict[str, Any]
) -> Baseline | BaselineCheck:
    file = _file(options)
    if options.action == "save":
        saved: Baseline = api.save_baseline(options.path, file, **how)
        return saved
    warning_ms, degraded_ms = _pair(options.p99, "--p99")
    loss, large_loss = _pair(options.loss, "--loss")
    checked: BaselineCheck = api.check_baseline(
        options.path,
        file,
        p99_s=(warning_ms / 1e3, degraded_ms / 1e3),
        loss=(loss / 100, large_loss / 100),
        **how,
    )
    return checked


def _file(options: argparse.Namespace) -> str:
    given = [name for name in (options.named, options.file) if name is not None]
    if len(given) > 1:
        raise InputError(f"two files for the baseline, {given[0]!r} and {given[1]!r}: give one")
    return str(given[0]) if given else FILE


def _pair(text: str, option: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} is {text!r}: give two numbers, such as 5,8") from None
    return first, second


def code_of(result: Any) -> int:
    """0 for good, 1 for degraded or dangerous, 2 where nothing could be judged."""
    if isinstance(result, StorageCheck):
        return {"healthy": GOOD, "unknown": NOT_JUDGED}.get(result.verdict, BAD)
    if isinstance(result, BaselineCheck):
        return BAD if result.verdict == "degraded" else GOOD
    return GOOD


def text_of(result: Any) -> str:
    """A result of this module as text."""
    return next(text(result) for kind, _, text in forms() if isinstance(result, kind))


def forms() -> tuple[tuple[type, Callable[[Any], str], Callable[[Any], str]], ...]:
    """(type of a result, as HTML, as text)."""
    from jupyter_ioscope.views import baseline, limits, storage

    return (
        (StorageCheck, storage.check_html, storage.check_text),
        (Limits, limits.limits_html, limits.limits_text),
        (Baseline, baseline.baseline_html, baseline.baseline_text),
        (BaselineCheck, baseline.check_html, baseline.check_text),
    )
