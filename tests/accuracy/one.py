"""Profiles one loader in this process: `python -m tests.accuracy.one ENTRY RESULT PROFILE TIER`.

A process of its own for each loader, so that nothing is warm that a first run finds cold, and so
that a loader that hangs can be ended. It starts other processes (spawned workers import this
file), so it stays light.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import sys
import time
from typing import Any

_PR_SET_DUMPABLE = 4
SKIPPED = 77  # exit status of a run that this machine cannot do, as automake has it


def main(arguments: list[str]) -> int:
    entry = json.loads(arguments[0])
    result_path, profile_path, tier = arguments[1:4]
    if tier == "no_ptrace":  # from now on only CAP_SYS_PTRACE may look, and that was given up
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    module = loaded(entry)
    load_before, started = os.getloadavg()[0], time.monotonic()
    try:
        if hasattr(module, "prepare"):
            module.prepare()
        prepared_s = time.monotonic() - started
        recording, error = profiled(module, entry["fresh"])
    except Exception as failure:
        if type(failure).__name__ != "CannotRun":
            raise
        print(failure, file=sys.stderr)
        return SKIPPED
    finally:
        if hasattr(module, "clean_up"):
            module.clean_up()
    keep(recording, profile_path)
    profile = recording.profile
    batches = len(profile.batches)
    result = {
        "entry": entry,
        "tier": profile.tier,
        "error": error,
        "batches": batches,
        "wall_s": profile.wall_s,
        "batch_s": profile.wall_s / batches if batches else 0.0,
        "prepared_s": prepared_s,
        "load_before": load_before,
        "created_utc": profile.created_utc,
        "skipped": "",
    }
    write(result_path, result)
    return 0


def keep(recording: Any, path: str) -> None:
    from jupyter_ioscope.model import files

    files.save(recording.profile, path)


def write(path: str, result: dict[str, Any]) -> None:
    """A result file; it appears whole or not at all."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(f"{path}.part", path)


def loaded(entry: dict[str, Any]) -> Any:
    """A loader of this package, or a file as an importable module: spawned workers import it."""
    source = entry["source"]
    if not source.endswith(".py"):
        package, loader, severity = source.split(":")
        kind = getattr(importlib.import_module(package), loader)
        return kind(severity, entry["step"] * entry["batch_s"])
    path = os.path.abspath(source)
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def profiled(module: Any, fresh: bool) -> tuple[Any, str]:
    """What a user would do in a cell. The second value names the exception that ended it."""
    import jupyter_ioscope as ioscope

    cap = getattr(module, "MAX_BATCHES", None)
    consume = getattr(module, "consume", None)
    recording = ioscope.profile()
    recording.start()
    failure: Exception | None = None
    try:
        loader = module.make_loader()
        for epoch in range(getattr(module, "EPOCHS", 1)):
            if fresh and epoch:
                loader = module.make_loader()
            for count, batch in enumerate(loader, 1):
                if consume is not None:
                    consume(batch)
                if cap and count >= cap:
                    break
    except Exception as raised:
        failure = raised
    recording.stop(failure)
    return recording, type(failure).__name__ if failure else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
