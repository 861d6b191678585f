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


def main(arguments: list[str]) -> int:
    entry = json.loads(arguments[0])
    result_path, profile_path, tier = arguments[1:4]
    if tier == "no_ptrace":  # from now on only CAP_SYS_PTRACE may look, and that was given up
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    module = loaded(entry["source"])
    before, started = os.getloadavg()[0], time.monotonic()
    if hasattr(module, "prepare"):
        module.prepare()
    prepared_s = time.monotonic() - started
    try:
        recording, error = profiled(module, entry["fresh"])
    finally:
        if hasattr(module, "clean_up"):
            module.clean_up()
    profile = recording.profile
    from jupyter_ioscope.model import files

    files.save(profile, profile_path)
    started = time.monotonic()
    findings = recording.diagnosis.findings
    result = {
        "entry": entry,
        "tier_asked": tier,
        "tier": profile.tier,
        "error": error,
        "batches": len(profile.batches),
        "wall_s": round(profile.wall_s, 3),
        "prepared_s": round(prepared_s, 3),
        "diagnosed_s": round(time.monotonic() - started, 3),
        "load_before": before,
        "created_utc": profile.created_utc,
        "first": findings[0].cause if findings else "",
        "skipped": "",
    }
    write(result_path, result)
    return 0


def write(path: str, result: dict[str, Any]) -> None:
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(f"{path}.part", path)


def loaded(source: str) -> Any:
    """A loader of this package, or a file as an importable module: spawned workers import it."""
    if not source.endswith(".py"):
        package, loader, severity = source.split(":")
        return importlib.import_module(package).LOADERS[loader].at(severity)
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
    error = ""
    try:
        with recording:
            loader = module.make_loader()
            for epoch in range(getattr(module, "EPOCHS", 1)):
                if fresh and epoch:
                    loader = module.make_loader()
                for count, batch in enumerate(loader, 1):
                    if consume is not None:
                        consume(batch)
                    if cap and count >= cap:
                        break
    except Exception as failure:
        error = type(failure).__name__
    return recording, error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
