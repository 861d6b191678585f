"""A storage baseline: measured now, saved, and compared later."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import Baseline, Circumstance, FileSystem, JobResult
from jupyter_ioscope.paths import absolute, path_text
from jupyter_ioscope.storage import apart, baseline_trace, filesystems, fio, kinds
from jupyter_ioscope.storage.baseline_jobs import OWN
from jupyter_ioscope.storage.cgroups import Groups
from jupyter_ioscope.storage.own_engine import LARGE, NAME, SMALL
from jupyter_ioscope.units import bytes_text, is_number, seconds

_PATTERNS = (("randread", SMALL), ("randwrite", SMALL), ("seqread", LARGE), ("seqwrite", LARGE))
# fio's engines, with the number of requests under way at once.
_ENGINES = (("psync", 1), ("libaio", 16), ("io_uring", 16))
_SILENCE_S = 60.0
# What a run takes beyond its time (fio starts and ends), and how fast a file is laid out: of a
# virtual disk, for a sentence that says "about".
_RUN_S, _LAY_OUT_BYTES_PER_S = 0.15, 200e6


class Options(NamedTuple):
    """How a baseline is measured.

    `seconds` is the time of one run of one job; `engine` is "fio", "own", or "" for fio where it is
    installed and our own engine otherwise. `block_trace` measures the device's own latencies, too,
    where tracefs may be used.
    """

    seconds: float = 0.5
    repeats: int = 5
    size_bytes: int = 256 << 20
    engine: str = ""
    depth: int = 16
    block_trace: bool = False

    def checked(self) -> Options:
        """Itself.

        Raises:
            InputError: a value cannot be used.
        """
        for name in ("seconds", "repeats", "size_bytes", "depth"):
            value = getattr(self, name)
            if not is_number(value) or (name != "seconds" and value != int(value)):
                kind = "number" if name == "seconds" else "whole number"
                raise InputError(f"{name} is {value!r}: give a {kind}")
        if not 0.05 <= self.seconds <= 600:
            raise InputError(f"seconds is {self.seconds!r}: give 0.05 to 600")
        if not 1 <= self.repeats <= 100:
            raise InputError(f"repeats is {self.repeats!r}: give 1 to 100")
        if not 1 << 24 <= self.size_bytes <= 1 << 40 or self.size_bytes % LARGE:
            raise InputError(f"size_bytes is {self.size_bytes!r}: give whole MiB, 16 at least")
        if not 1 <= self.depth <= 1024:
            raise InputError(f"depth is {self.depth!r}: give 1 to 1024")
        if self.engine not in ("", "fio", "own"):
            raise InputError(f"engine is {self.engine!r}: give 'fio' or 'own'")
        return self


def measure(
    path: str | os.PathLike[str],
    options: Options | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Baseline:
    """Measure a folder's storage now: every job `repeats` times, one round after the other.

    `on_step` is called with a sentence before anything is measured, which says how long it will
    take, and then with each step.

    Raises:
        InputError: it cannot be measured, or an option cannot be used; one sentence says why.
        CaptureError: the measuring process could not be started.
    """
    options = (options or Options()).checked()
    place = absolute(kinds.local_path(path_text(path, wanted="the path of a folder")))
    apart.refuse_silent(place)
    tool = _tool(options.engine)
    jobs = _jobs(tool, options.depth)
    long_s = _SILENCE_S + len(jobs) * (options.seconds + 2)
    rounds = options.repeats + _traced_rounds(options)
    steps = _Steps(on_step, len(jobs) * rounds, expected_s(jobs, options))
    outcome = apart.run(
        "baseline",
        long_s,
        long_s * (rounds + 1),
        steps.row,
        path=place,
        size=options.size_bytes,
        seconds=options.seconds,
        repeats=options.repeats,
        jobs=jobs,
        fio=tool,
        block_trace=options.block_trace,
    )
    if outcome.refused:
        raise InputError(outcome.refused)
    if outcome.silent:
        more = f"; the folder {outcome.left!r} is left in it" if outcome.left else ""
        raise InputError(f"{place!r} does not answer: given up while {outcome.silent}{more}")
    return _made(outcome.rows, place, tool, options)


def expected_s(jobs: Sequence[fio.Job], options: Options) -> float:
    """About how long a baseline takes, in seconds: its runs, and laying its file out."""
    traced_s = min(options.seconds, baseline_trace.LONGEST_S)
    return (
        len(jobs) * options.repeats * (options.seconds + _RUN_S)
        + len(jobs) * _traced_rounds(options) * (traced_s + _RUN_S)
        + options.size_bytes / _LAY_OUT_BYTES_PER_S
    )


def _traced_rounds(options: Options) -> int:
    return baseline_trace.rounds(options.repeats) if options.block_trace else 0


class _Steps:
    """Says how long a baseline will take, and then how far it is."""

    def __init__(self, say: Callable[[str], None] | None, runs: int, seconds_: float) -> None:
        self._say, self._runs, self._done = say, runs, 0
        if say is not None:
            say(f"measuring takes about {seconds(seconds_)}")

    def row(self, row: dict[str, Any]) -> None:
        self._done += "run" in row
        if self._say is not None and ("run" in row or "doing" in row):
            doing = row.get("doing", "measuring")
            self._say(f"{doing}: {self._done} of {self._runs} runs done")


def _tool(engine: str) -> str:
    found = None if engine == "own" else fio.found()
    if engine == "fio" and found is None:
        raise InputError("fio is not installed (Debian: apt-get install fio); or use engine='own'")
    return found or ""


def _jobs(tool: str, depth: int) -> list[fio.Job]:
    engines = _ENGINES if tool else ((OWN, 1), (OWN, depth))
    return [
        fio.Job(engine, pattern, block, 1 if at_once == 1 else depth)
        for engine, at_once in engines
        for pattern, block in _PATTERNS
    ]


def _made(rows: Sequence[dict[str, Any]], place: str, tool: str, options: Options) -> Baseline:
    runs: dict[fio.Job, list[fio.Run]] = {}
    for row in rows:
        if "run" in row:
            job, *numbers = row["run"]
            run = fio.Run(fio.Job(*job), *numbers)
            runs.setdefault(run.job, []).append(run)
    missing = tuple(dict.fromkeys(str(row["missing"]) for row in rows if "missing" in row))
    if not runs:
        raise InputError(f"nothing could be measured: {'; '.join(missing) or 'no job ran'}")
    direct = any(row.get("direct") for row in rows)
    real = next(
        (str(row["path"]) for row in rows if row["step"] == "look" and "path" in row), place
    )
    name = fio.version(tool) if tool else NAME
    found = filesystems.of_path(real)
    return Baseline(
        path=real,
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        tool=name,
        direct=direct,
        circumstances=tuple(_circumstances(found, name, direct, options)),
        jobs=tuple(_summary(job, found_runs) for job, found_runs in runs.items()),
        not_measured=missing,
    )


def _summary(job: fio.Job, runs: list[fio.Run]) -> JobResult:
    speeds = [run.bytes_per_s for run in runs]
    late = [run.p99_s for run in runs]
    return JobResult(
        engine=job.engine,
        pattern=job.pattern,
        block_bytes=job.block_bytes,
        depth=job.depth,
        repeats=len(runs),
        bytes_per_s=median(speeds),
        bytes_per_s_low=min(speeds),
        bytes_per_s_high=max(speeds),
        requests_per_s=median(run.requests_per_s for run in runs),
        p50_s=median(run.p50_s for run in runs),
        p99_s=median(late),
        p99_low_s=min(late),
        p99_high_s=max(late),
    )


def _circumstances(
    found: FileSystem, tool: str, direct: bool, options: Options
) -> Iterable[Circumstance]:
    # What a change of storage, kernel or host may well be the cause of a change is only noted.
    yield from _known_before("fio" if tool.startswith("fio") else tool, options)
    yield Circumstance("past the page cache", "yes" if direct else "no", True)
    yield Circumstance("file system", found.name, True)
    yield Circumstance("tool's version", tool, False)
    yield Circumstance("kernel", f"{platform.system()} {platform.release()}", False)
    yield Circumstance("host", platform.node(), False)
    yield Circumstance("mount point", found.mount_point, False)
    yield Circumstance("source", found.source, False)
    yield Circumstance("mount options", ",".join(found.options), False)


def known_before(options: Options) -> tuple[Circumstance, ...]:
    """The circumstances that are known before anything is measured.

    Raises:
        InputError: an option cannot be used, or its engine is not there.
    """
    options = options.checked()
    return tuple(_known_before("fio" if _tool(options.engine) else NAME, options))


def _known_before(tool: str, options: Options) -> Iterable[Circumstance]:
    yield Circumstance("tool", tool, True)
    yield Circumstance("size of the file", bytes_text(options.size_bytes), True)
    yield Circumstance("seconds a run", f"{options.seconds:g}", True)
    yield Circumstance("cores", str(_cores()), True)
    limits = [f"{row.what} {row.per_s}" for row in Groups().io_limits()]
    told = ", ".join(sorted(set(limits))) or "none"
    yield Circumstance("limits of the control group", told, True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
