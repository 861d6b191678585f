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
from jupyter_ioscope.paths import absolute
from jupyter_ioscope.storage import apart
from jupyter_ioscope.trials.alone import alone
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.compare import check_budget
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Cancelled, Watch
from jupyter_ioscope.trials.progress import Progress, Reporter
from jupyter_ioscope.trials.room import memory_limit_bytes

_SILENCE_S = 90.0


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
    if is_path(target):
        text = os.fsdecode(os.fspath(target))
        if text and "\0" not in text:  # else refused with a sentence by the bench
            apart.refuse_silent(absolute(os.path.expanduser(text)))


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
