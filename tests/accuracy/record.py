"""Profiles the entries one after the other, each in a process of its own, and keeps what came."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.accuracy.entries import Entry
from tests.accuracy.one import write
from tests.accuracy.processes import Processes, why_not

TIERS = ("full", "no_ptrace", "in_process")
DEADLINE_S = 120.0
PROFILE, RESULT = ".ioscope.json.gz", ".result.json"
FIRST_SEVERITY = "severe"


def record(
    entries: Sequence[Entry], folder: Path, tier: str = "full", deadline_s: float = DEADLINE_S
) -> list[str]:
    """Profile every entry into `folder`/`tier`; the names of those that crashed or hung."""
    reason = why_not(tier)
    if reason:
        print(f"{tier}: skipped, {reason}", file=sys.stderr, flush=True)
        return []
    target = folder / tier
    target.mkdir(parents=True, exist_ok=True)
    failed = []
    with (
        tempfile.TemporaryDirectory(prefix="ioscope-accuracy-") as data,
        Processes(tier, Path(data)) as processes,
    ):
        for number, entry in enumerate(entries, 1):
            at = f"{tier} {number} of {len(entries)} {entry.name}"
            print(at, end=" ... ", file=sys.stderr, flush=True)
            said = record_one(entry, target, processes, deadline_s)
            print(said or "recorded", file=sys.stderr, flush=True)
            if said and not said.startswith("skipped: "):
                failed.append(f"{tier} {entry.name}: {said}")
            if entry.case and not any(row.case == entry.case for row in entries[number:]):
                shutil.rmtree(Path(data) / entry.case, ignore_errors=True)  # together 6 GB
    return failed


def record_one(entry: Entry, target: Path, processes: Processes, deadline_s: float) -> str:
    """Profile one entry; empty, or why there is no profile. An earlier one is replaced last."""
    stem = target / entry.file_name
    kept, made = f"{stem}{PROFILE}", f"{stem}.new{PROFILE}"
    result = f"{stem}.new{RESULT}"
    if entry.step:
        severest = result_of(target / severest_name(entry))
        if not severest or severest["skipped"]:
            return f"skipped: no run without a step tells how long one should be ({entry.severity})"
        entry = replace(entry, batch_s=severest["batch_s"])
    run = processes.fresh if entry.source.endswith(".py") else processes.forked
    said = run([json.dumps(entry.to_json()), result, made, processes.tier], deadline_s)
    if said.startswith("skipped: "):
        skip = {"entry": entry.to_json(), "skipped": said.removeprefix("skipped: ")}
        Path(kept).unlink(missing_ok=True)
        write(f"{stem}{RESULT}", skip)
    elif not said and not (Path(made).exists() and Path(result).exists()):
        said = "it left no profile"
    if said:
        for path in (made, result):
            Path(path).unlink(missing_ok=True)
        return said
    os.replace(made, kept)
    os.replace(result, f"{stem}{RESULT}")
    return ""


def severest_name(entry: Entry) -> str:
    """The file name of the same loader without a step."""
    return entry.file_name.removesuffix(entry.severity) + FIRST_SEVERITY


def result_of(stem: Path) -> dict[str, Any]:
    """What an earlier run left; empty where there was none."""
    try:
        result: dict[str, Any] = json.loads(Path(f"{stem}{RESULT}").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return result
