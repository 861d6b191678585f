"""Runs a bench on a target in a process of its own, through the engine that runs trials."""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from jupyter_ioscope.benches._bench import bench_named
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._result import result
from jupyter_ioscope.benches._rounds import Rounds
from jupyter_ioscope.benches._targets import is_path
from jupyter_ioscope.errors import InputError, MissingPackageError, TrialError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.bench import BenchResult
from jupyter_ioscope.storage import apart
from jupyter_ioscope.trials.alone import alone
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.compare import check_budget
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Cancelled, Watch
from jupyter_ioscope.trials.progress import Progress, Reporter
from jupyter_ioscope.trials.room import memory_limit_bytes
from jupyter_ioscope.units import seconds

_SILENCE_S = 90.0
_TOUCH_S = 10.0


def bench(
    name: str,
    target: Any,
    budget_s: float = 30.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> BenchResult:
    """See `ioscope.bench`.

    Raises:
        InputError: there is no such bench, or the target cannot be used; one sentence says why.
        TrialError: the bench's process failed, was cancelled, or another one is running.
    """
    found = bench_named(name)
    check_budget(budget_s)
    _refuse_silent(target)
    reporter = Reporter(on_progress, budget_s)
    with alone(), Isolation() as isolation:
        watch = Watch(
            _SILENCE_S,
            cancel,
            functools.partial(_told, reporter),
            memory_limit_bytes(),
        )
        told = _answered(isolation, Job(found.name, job, (name, target, budget_s)), watch)
        if "refused" in told:
            raise InputError(told["refused"])
        made: BenchResult = files.decoded(BenchResult, told["result"], "bench")
        reporter.last("done", made.headline)
        return dataclasses.replace(
            made,
            isolation=isolation.rung,
            isolation_text=isolation.text,
            seconds=reporter.age_s(),
        )


def _told(reporter: Reporter, report: dict[str, Any]) -> None:
    to_go_s = float(report.get("to_go_s", -1.0))
    if to_go_s >= 0:
        reporter.expect(reporter.age_s() + to_go_s)
    state = "running" if to_go_s >= 0 else "preparing"
    reporter.stage(state, str(report.get("text", "starting")))


def _refuse_silent(target: Any) -> None:
    """A device that hangs would hold up the bench's process, and whoever waits for its end.

    Raises:
        InputError: the path does not answer.
    """
    if not is_path(target):
        return
    try:
        path = os.path.abspath(os.path.expanduser(os.fsdecode(os.fspath(target))))
    except FileNotFoundError as error:
        raise InputError("the working folder of this process is gone: os.chdir() first") from error
    if "\0" in path:
        return  # refused with a sentence by the bench
    outcome = apart.run("touch", _TOUCH_S, _TOUCH_S, path=path)
    if outcome.silent:
        raise InputError(
            f"{path!r} does not answer: given up after {seconds(_TOUCH_S)}, while "
            f"{outcome.silent}; is its device or server there?"
        )


def _answered(isolation: Isolation, job: Job, watch: Watch) -> dict[str, Any]:
    try:
        return isolation.run(job, watch)[0]
    except Cancelled:
        raise TrialError("cancelled before the bench was complete") from None


def job(
    emit: Any, stop: Any, folder: str, name: str, target: Any, budget_s: float
) -> dict[str, Any]:
    """The whole bench. `folder` is "" where this is the user's own process."""
    began = time.monotonic()
    rounds: Rounds | None = None

    def say(text: str) -> None:
        if stop():
            raise InterruptedError("stopped")
        to_go_s = -1.0 if rounds is None else rounds.to_go_s
        emit({"kind": "beat", "text": text, "to_go_s": to_go_s})

    with tempfile.TemporaryDirectory(dir=folder or None, prefix="ioscope-bench-") as own:
        say("preparing")
        found = bench_named(name)
        try:
            prepared = found.prepare(target, own)
        except (InputError, MissingPackageError) as error:
            return {"refused": str(error)}
        except OSError as error:
            return {"refused": f"{found.name} cannot be prepared: {short(error)}"}
        rounds = Rounds(prepared.arms, say, bool(folder), began + budget_s)
        rounds.run()
        made = result(found, prepared, rounds, time.monotonic() - began)
    return {"result": files.encoded(made)}
