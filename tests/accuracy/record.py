"""Profiles the entries one after the other, each in a process of its own, and keeps what came."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.accuracy.entries import Entry
from tests.accuracy.one import write

ROOT = Path(__file__).parents[2]
TIERS = ("full", "no_ptrace", "in_process")
DEADLINE_S = 120.0
PROFILE, RESULT = ".ioscope.json.gz", ".result.json"


def record(
    entries: Iterable[Entry], folder: Path, tier: str = "full", deadline_s: float = DEADLINE_S
) -> list[str]:
    """Profile every entry into `folder`/`tier`; the names of those that crashed or hung."""
    target = folder / tier
    target.mkdir(parents=True, exist_ok=True)
    failed = []
    for entry in entries:
        print(f"{tier} {entry.name} ...", end=" ", file=sys.stderr, flush=True)
        said = record_one(entry, target, tier, deadline_s)
        print(said or "recorded", file=sys.stderr, flush=True)
        if said:
            failed.append(f"{entry.name}: {said}")
    return failed


def record_one(entry: Entry, target: Path, tier: str, deadline_s: float) -> str:
    """Profile one entry; empty, or why there is no profile. An earlier one is replaced last."""
    stem = target / entry.file_name
    kept = f"{stem}{PROFILE}"
    made = f"{stem}.new{PROFILE}"
    result = f"{stem}.new{RESULT}"
    with tempfile.TemporaryDirectory(prefix="ioscope-no-proc-") as empty:
        command, environment = how(tier, Path(empty))
        command += [json.dumps(entry.to_json()), result, made, tier]
        said = run(command, environment, deadline_s)
    if said.startswith("skipped: "):
        skip = {"entry": entry.to_json(), "skipped": said.removeprefix("skipped: ")}
        Path(kept).unlink(missing_ok=True)
        write(f"{stem}{RESULT}", skip)
        return ""
    if said or not Path(made).exists() or not Path(result).exists():
        for path in (made, result):
            Path(path).unlink(missing_ok=True)
        return said or "it left no profile"
    os.replace(made, kept)
    os.replace(result, f"{stem}{RESULT}")
    return ""


def how(tier: str, empty: Path) -> tuple[list[str], dict[str, str]]:
    """The command and environment in which a tier is what can be had.

    Without ptrace: the process cannot be looked at (not dumpable), and root gives up the right that
    overrides this. In process: there is nothing where the sampler looks for /proc.
    """
    command = [sys.executable, "-m", "tests.accuracy.one"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    if tier == "no_ptrace" and os.geteuid() == 0:
        capsh = shutil.which("capsh")
        if capsh is None:
            raise RuntimeError("as root the tier without ptrace needs capsh (package libcap2-bin)")
        command = [capsh, "--drop=cap_sys_ptrace", "--", "-c", 'exec "$0" "$@"', *command]
    if tier == "in_process":
        environment["IOSCOPE_PROC"] = str(empty)
    return command, environment


def run(command: list[str], environment: dict[str, str], deadline_s: float) -> str:
    """Run a command in a session of its own and end all of it; empty, or what went wrong."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        return f"it did not end within {deadline_s:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    last = errors.strip().splitlines()[-1:] or [""]
    if process.returncode == 77:  # what automake calls a skipped test
        return f"skipped: {last[0]}"
    return f"exit status {process.returncode}: {last[0]}" if process.returncode else ""
