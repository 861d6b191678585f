"""Running fio, and reading its JSON (fio(1), --output-format=json)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError

_MOST_WRITTEN = 256 << 20  # bytes a job may write, whatever its time


class Job(NamedTuple):
    """One job of a baseline; `engine` is fio's ioengine."""

    engine: str
    pattern: str
    block_bytes: int
    depth: int


class Run(NamedTuple):
    """What one run of one job came to. Bandwidth in bytes per second, latencies in seconds."""

    job: Job
    bytes_per_s: float
    requests_per_s: float
    p50_s: float
    p99_s: float


# Our pattern -> fio's
_PATTERNS = {
    "randread": "randread",
    "randwrite": "randwrite",
    "seqread": "read",
    "seqwrite": "write",
}


def found() -> str | None:
    """The path of fio; None where it is not installed."""
    return shutil.which("fio")


def version(fio: str) -> str:
    """Such as "fio-3.33".

    Raises:
        InputError: what is there is not fio, or does not run.
    """
    try:
        done = subprocess.run(
            [fio, "--version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{fio!r} does not run: {error}") from error
    text = done.stdout.strip()
    if not text.startswith("fio"):
        raise InputError(f"{fio!r} is not fio: --version answers {text[:60]!r}")
    return text


def command(
    fio: str, file: str, size: int, jobs: Iterable[Job], seconds: float, direct: bool
) -> list[str]:
    """One call of fio that runs jobs of one engine one after the other on one file.

    It has to be started in the file's folder: fio takes a colon for the end of a file's name.
    """
    words = [
        fio, "--output-format=json", f"--filename={os.path.basename(file)}", f"--size={size}",
        f"--direct={int(direct)}", f"--runtime={max(1, round(seconds * 1000))}ms",
        "--randrepeat=0", "--group_reporting=0", "--thread", "--refill_buffers",
    ]  # fmt: skip
    for job in jobs:
        words += [
            f"--name={job.pattern}", "--stonewall", f"--rw={_PATTERNS[job.pattern]}",
            f"--bs={job.block_bytes}", f"--ioengine={job.engine}", f"--iodepth={job.depth}",
        ]  # fmt: skip
        # Reads go on until the time is over; writes end there, or earlier at so many bytes.
        reads = job.pattern.endswith("read")
        words.append("--time_based" if reads else f"--io_size={_MOST_WRITTEN}")
    return words


def run(words: list[str], jobs: Iterable[Job], timeout_s: float, folder: str) -> list[Run]:
    """Run a command of `command` in `folder`, that of its file, and read what it prints.

    Raises:
        InputError: fio failed, hung, or printed something else than its JSON.
    """
    try:
        with subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            cwd=folder,
        ) as process:
            try:
                out, errors = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
    except subprocess.TimeoutExpired as error:
        raise InputError(f"fio did not end within {timeout_s:.0f} s") from error
    except OSError as error:
        raise InputError(f"fio could not be started: {error}") from error
    if process.returncode:
        said = _last_line(errors) or _last_line(out) or _how(process.returncode)
        raise InputError(f"fio failed: {said}")
    return parse(out, tuple(jobs))


def parse(text: str, jobs: tuple[Job, ...]) -> list[Run]:
    """fio's JSON as runs, in the order of `jobs`. Notes that fio prints before it are passed over.

    Raises:
        InputError: it is not complete JSON, or does not hold what is needed.
    """
    try:
        document = json.loads(text[max(0, text.find("{")) :])
        rows = document["jobs"]
        if not isinstance(rows, list) or len(rows) != len(jobs):
            raise InputError(f"fio reported {len(rows)} jobs where {len(jobs)} were asked for")
        return [_run(row, job) for row, job in zip(rows, jobs, strict=True)]
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"fio's output cannot be read ({type(error).__name__}: {error}): it is not its JSON"
        ) from error


def _run(row: dict[str, Any], job: Job) -> Run:
    if row.get("error"):
        raise InputError(f"fio's job {job.pattern} with {job.engine} failed: error {row['error']}")
    side = row["read" if job.pattern.endswith("read") else "write"]
    if not side["total_ios"]:
        raise InputError(f"fio's job {job.pattern} with {job.engine} made no request")
    # fio before 3.0 gave microseconds and named the table `clat`.
    latency, unit = (side["clat_ns"], 1e9) if "clat_ns" in side else (side["clat"], 1e6)
    shares = latency["percentile"]
    bandwidth = float(side.get("bw_bytes") or side["bw"] * 1024)
    return Run(
        job,
        bandwidth,
        float(side["iops"]),
        float(shares["50.000000"]) / unit,
        float(shares["99.000000"]) / unit,
    )


def _how(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
