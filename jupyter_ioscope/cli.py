"""The command line: record a script, show a saved profile.

Exit codes: the script's own for `record` (1 after an exception); 0 when done; 2 for bad input.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from jupyter_ioscope.api import Recording, load
from jupyter_ioscope.capture.profiler import CaptureOptions
from jupyter_ioscope.errors import InputError, IoscopeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except IoscopeError as error:
        print(f"ioscope: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m jupyter_ioscope",
        description="Why a training loop waits for data.",
    )
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    record = commands.add_parser("record", help="run a Python script and profile its loaders")
    record.add_argument("script", help="the script to run")
    record.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    record.add_argument("--save", metavar="PATH", help="default: SCRIPT.ioscope.json, here")
    record.add_argument("--seconds", type=float, metavar="S", help="stop recording after S seconds")
    record.add_argument("--batches", type=int, metavar="N", help="stop recording after N batches")
    text = "thread states and stacks per second (default 25)"
    record.add_argument("--rate", type=float, default=25.0, metavar="HZ", help=text)
    record.add_argument("--no-stacks", action="store_true", help="no flame graph, lower cost")
    record.add_argument("--label", metavar="TEXT", help="a name for the report")
    record.add_argument("--json", action="store_true", help="print the diagnosis as JSON")
    record.set_defaults(run=_record)
    report = commands.add_parser("report", help="show a saved profile")
    report.add_argument("file", help="a file that record or p.save() wrote")
    report.add_argument("--json", action="store_true", help="print the diagnosis as JSON")
    report.add_argument("--html", metavar="PATH", help="write the report as a script-free page")
    report.set_defaults(run=_report)
    return made


def _record(options: argparse.Namespace) -> int:
    if not os.path.isfile(options.script):
        raise InputError(f"there is no script {options.script!r}")
    recording = Recording(
        CaptureOptions(
            seconds=options.seconds,
            batches=options.batches,
            rate_hz=options.rate,
            stacks=not options.no_stacks,
            label=options.label or os.path.basename(options.script),
        )
    )
    code = _run_script(options.script, options.arguments, recording)
    base = os.path.splitext(os.path.basename(options.script))[0]
    path = options.save or f"{base}.ioscope.json"
    _print(recording, options.json)
    recording.save(path)
    print(f"profile: {path}", file=sys.stderr)
    return code


def _run_script(script: str, arguments: Sequence[str], recording: Recording) -> int:
    """Run the script as `__main__` under the recording; its exit code."""
    import runpy

    argv, path0 = sys.argv, sys.path[0]
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    code = 0
    error: BaseException | None = None
    recording.start()
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        error = end if end.code else None
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)  # as Python itself would: sys.exit("no such file")
    except BaseException as problem:
        error, code = problem, 1
    finally:
        recording.stop(error)
        sys.argv, sys.path[0] = argv, path0
    if error is not None and not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, _from_script(error.__traceback__, script))
    return code


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on, as the script alone would have shown it."""
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename != script:
        first = first.tb_next
    return first or trace


def _report(options: argparse.Namespace) -> int:
    recording = load(options.file)
    _print(recording, options.json)
    if options.html:
        from jupyter_ioscope.views.html import page

        try:
            with open(options.html, "w", encoding="utf-8") as file:
                file.write(page(recording.profile, recording.diagnosis))
        except OSError as error:
            raise InputError(f"cannot write {options.html!r}: {error.strerror}") from error
        print(f"page: {options.html}", file=sys.stderr)
    return 0


def _print(recording: Recording, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_plain(recording.diagnosis), indent=2, allow_nan=False))
    else:
        print(recording)


def _plain(value: Any) -> Any:
    """Frozen values as what JSON knows; what is not a number becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
