"""The command line: record a script, show a saved profile, compare and tune loaders, check storage.

Exit codes: the script's own for `record` (1 after an exception, and 2 where only its profile could
not be saved); 0 when done; 1 when `storage` or `baseline check` found storage degraded; 2 for bad
input, and for storage that could not be judged; 3 when `compare` or `tune` found nothing better;
130 when interrupted, 143 when ended by SIGTERM (129 by SIGHUP).
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence

from jupyter_ioscope import bench_commands, commands, exports, storage_commands
from jupyter_ioscope.api import Recording, load
from jupyter_ioscope.capture.profiler import CaptureOptions
from jupyter_ioscope.ended_by_signal import Ended, tidied
from jupyter_ioscope.errors import InputError, IoscopeError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.paths import absolute
from jupyter_ioscope.progress_line import ProgressLine
from jupyter_ioscope.scripts import INTERRUPTED, run_script
from jupyter_ioscope.targets import loader_of
from jupyter_ioscope.terminal import Parser, flush, say, tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code."""
    options = _parser().parse_args(arguments)
    # A script that is recorded ends as it would without us.
    tidy = contextlib.nullcontext() if options.run is _record else tidied()
    try:
        with tidy:
            code = int(options.run(options))
            flush()
            return code
    except IoscopeError as error:
        tell(f"ioscope: {error}")
        return 2
    except Ended as ended:
        tell("ioscope: ended by a signal")
        return ended.code
    except KeyboardInterrupt:
        tell("ioscope: interrupted")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="python -m jupyter_ioscope",
        description="Why a training loop waits for data.",
    )
    known = made.add_subparsers(required=True, metavar="COMMAND")
    record = known.add_parser("record", help="run a Python script and profile its loaders")
    record.add_argument("script", help="the script to run")
    record.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    record.add_argument("--save", metavar="PATH", help="default: SCRIPT.ioscope.json, here")
    record.add_argument("--seconds", type=float, metavar="S", help="stop recording after S seconds")
    record.add_argument("--batches", type=int, metavar="N", help="stop recording after N batches")
    text = "thread states and stacks per second (default 25)"
    record.add_argument("--rate", type=float, default=25.0, metavar="HZ", help=text)
    record.add_argument("--no-stacks", action="store_true", help="no flame graph, lower cost")
    text = "also trace the requests of block devices; takes rights on tracefs (root)"
    record.add_argument("--block-trace", action="store_true", help=text)
    record.add_argument("--label", metavar="TEXT", help="a name for the report")
    record.add_argument("--json", action="store_true", help="print the diagnosis as JSON")
    record.set_defaults(run=_record)
    report = known.add_parser("report", help="show a saved profile")
    report.add_argument("file", help="a file that record or p.save() wrote")
    report.add_argument("--json", action="store_true", help="print the diagnosis as JSON")
    report.add_argument(
        "--html", metavar="PATH", help="write the report as one page that needs no network"
    )
    report.set_defaults(run=_report)
    export = known.add_parser("export", help="a saved profile as a file for other tools")
    exports.add_export(export)
    export.set_defaults(run=exports.run_export)
    difference = known.add_parser("difference", help="flame graphs of one profile against another")
    exports.add_difference(difference)
    difference.set_defaults(run=exports.run_difference)
    target = "LOADER is FILE.py:NAME, a DataLoader or a function without arguments that makes one"
    compare = known.add_parser("compare", help="A/B two loaders, or toggles", epilog=target)
    commands.add_compare(compare)
    compare.set_defaults(run=_compare)
    tune = known.add_parser("tune", help="search workers x prefetch", epilog=target)
    commands.add_tune(tune)
    tune.set_defaults(run=_tune)
    storage = known.add_parser("storage", help="is the place where data lives healthy?")
    storage_commands.add_storage(storage)
    storage.add_argument("--profile", metavar="FILE", help="say what it means for its loader")
    storage.set_defaults(run=_storage)
    limits = known.add_parser("limits", help="what containers and ulimits do to a loader")
    storage_commands.add_limits(limits)
    limits.add_argument("--profile", metavar="FILE", help="advice for its loader")
    limits.set_defaults(run=_limits)
    baseline = known.add_parser("baseline", help="save a storage baseline, or check against it")
    storage_commands.add_baseline(baseline)
    baseline.set_defaults(run=_baseline)
    bench = known.add_parser(
        "bench",
        help="formats, parsers, engines on your own file or sample",
        epilog="TARGET is a path, or FILE.py:NAME for an object or a function that makes one",
    )
    bench_commands.add_bench(bench)
    bench.set_defaults(run=_bench)
    for command in (compare, tune, storage, limits, baseline, bench):
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    return made


def _record(options: argparse.Namespace) -> int:
    if not os.path.isfile(options.script):
        raise InputError(f"there is no script {options.script!r}")
    base = os.path.splitext(os.path.basename(options.script))[0]
    path = f"{base}.ioscope.json" if options.save is None else options.save
    # Before the script runs, which may take hours, and go to another folder.
    target = absolute(str(files.target_of(path, "--save")))
    recording = Recording(
        CaptureOptions(
            seconds=options.seconds,
            batches=options.batches,
            rate_hz=options.rate,
            stacks=not options.no_stacks,
            label=options.label or os.path.basename(options.script),
            block_trace=options.block_trace,
        )
    )
    code = run_script(options.script, options.arguments, recording)
    unsaved = _why_unsaved(recording, target)
    _print(recording, options.json)
    tell(f"ioscope: {unsaved}" if unsaved else f"profile: {path}")
    return code or (2 if unsaved else 0)


def _why_unsaved(recording: Recording, path: str) -> str:
    """Write the profile; "" or why that was not possible: the report is shown all the same."""
    try:
        recording.save(path)
    except IoscopeError as error:
        return str(error)
    return ""


def _report(options: argparse.Namespace) -> int:
    recording = load(options.file)
    _print(recording, options.json)
    if options.html is not None:
        commands.write_report(recording, options.html, options.file)
    return 0


def _compare(options: argparse.Namespace) -> int:
    a = loader_of(options.a)
    result = commands.run_compare(a, loader_of(options.b) if options.b else None, options)
    say(commands.as_json(result) if options.json else commands.text_of(result))
    return commands.code_of(result)


def _tune(options: argparse.Namespace) -> int:
    result = commands.run_tune(loader_of(options.a), options)
    say(commands.as_json(result) if options.json else commands.text_of(result))
    return commands.code_of(result)


def _storage(options: argparse.Namespace) -> int:
    profile = _saved_profile(options.profile)
    line = ProgressLine.of_terminal()
    return _shown(storage_commands.run_storage(options, profile, line), options)


def _limits(options: argparse.Namespace) -> int:
    return _shown(storage_commands.run_limits(_saved_profile(options.profile)), options)


def _baseline(options: argparse.Namespace) -> int:
    return _shown(storage_commands.run_baseline(options, ProgressLine.of_terminal()), options)


def _bench(options: argparse.Namespace) -> int:
    known = bench_commands.listed(options)
    if known:
        say(known)
        return 0
    result = bench_commands.run_bench(
        bench_commands.from_command_line(options), options, ProgressLine.of_terminal()
    )
    say(commands.as_json(result) if options.json else bench_commands.text_of(result))
    return 0


def _saved_profile(path: str | None) -> Profile | None:
    return load(path).profile if path else None


def _shown(result: object, options: argparse.Namespace) -> int:
    say(commands.as_json(result) if options.json else storage_commands.text_of(result))
    return storage_commands.code_of(result)


def _print(recording: Recording, as_json: bool) -> None:
    if as_json:
        say(commands.as_json(recording.diagnosis))
    else:
        say(recording)
