"""Runs a script under a recording as `python script.py` would: its folder, its names, its end."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
import traceback
import types
import zipfile
from collections.abc import Sequence
from types import TracebackType

from jupyter_ioscope.recording import Recording

INTERRUPTED = 130  # as shells have it: 128 and the signal's number


def run_script(script: str, arguments: Sequence[str], recording: Recording) -> int:
    """Run the script as `__main__` under the recording; its exit code.

    Raises:
        InputError, CaptureError: it cannot be recorded; it did not run.
        SystemExit: this is a child that the script forked, and it ended.
    """
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    whole = os.path.abspath(script)
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    code, here = 0, os.getpid()
    error: BaseException | None = None
    recording.start()
    try:
        _as_main(whole)
    except SystemExit as end:
        error = end if end.code else None
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)  # as Python itself would: sys.exit("no such file")
    except KeyboardInterrupt as problem:
        error, code = problem, INTERRUPTED
    except BaseException as problem:
        error, code = problem, 1
    finally:
        recording.stop(error)
        sys.argv, sys.path[:] = argv, path
    if error is not None and not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, _from_script(error.__traceback__, whole))
    if os.getpid() != here:
        sys.exit(code)  # the report is its parent's
    return code


def _as_main(whole: str) -> None:
    if zipfile.is_zipfile(whole):
        runpy.run_path(whole, run_name="__main__")
        return
    # Not by runpy: it would put the whole path into sys.argv, which a script may print or parse.
    loader = importlib.machinery.SourceFileLoader("__main__", whole)
    code = loader.source_to_code(loader.get_data(whole), whole)
    main = types.ModuleType("__main__")
    names = {"__file__": whole, "__builtins__": builtins, "__loader__": loader, "__cached__": None}
    vars(main).update(names, __package__=None)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))
    finally:
        sys.modules["__main__"] = before


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The traceback from the script's first frame on, as the script alone would have shown it; None
    where it did not get so far (a mistake in its text)."""
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(script):
        trace = trace.tb_next
    return trace
