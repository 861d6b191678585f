"""A tracefs of one's own: mounted where only the code that is run sees it.

Needs root. The mount ends with the processes that see it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
_MOUNT = 'mount -t tracefs none "$0" && exec "$@"'


def why_not(folder: Path) -> str:
    """What is lacking for a mount at `folder`; empty where nothing is."""
    if not sys.platform.startswith("linux"):
        return "tracefs is there on Linux only"
    if os.geteuid():
        return "mounting tracefs needs root"
    if shutil.which("unshare") is None:
        return "unshare (util-linux) is not installed"
    done = _run(folder, ["test", "-w", f"{folder}/instances", "-a", "-d", f"{folder}/events/block"])
    return "" if done.returncode == 0 else f"no tracefs for this container: {done.stderr.strip()}"


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code that finds a tracefs at `folder`."""
    return _run(folder, [sys.executable, "-c", code])


def _run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, folder, *command],
        env={**os.environ, "PYTHONPATH": ROOT},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
