"""Starts the process of one run, ends it at its deadline with all it started, says how it went."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.accuracy.one import SKIPPED

ROOT = Path(__file__).parents[2]
START_S = 60.0
END_S = 10.0


class Processes:
    """Runs `tests.accuracy.one` in a fresh process, or in a fork of one that has the libraries.

    A run's outcome is a text: empty, or what went wrong, or "skipped: " and why.

    Args:
        tier: how much the profiler may see: "full", "no_ptrace", "in_process".
        data: the folder of the loaders' data.
    """

    def __init__(self, tier: str, data: Path) -> None:
        self.tier = tier
        self._errors = data / f"errors-{os.getpid()}"
        self._environment = environment(tier, data)
        self._zygote: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._zygote is not None:
            assert self._zygote.stdin is not None
            with contextlib.suppress(OSError):
                self._zygote.stdin.close()
            self._zygote.kill()
            self._zygote.wait()
            assert self._zygote.stdout is not None
            self._zygote.stdout.close()

    def fresh(self, arguments: list[str], deadline_s: float) -> str:
        """Run in a new Python."""
        with open(self._errors, "wb") as errors:
            process = subprocess.Popen(
                [*command(self.tier, "tests.accuracy.one"), *arguments],
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        try:
            return self._outcome(process.wait(deadline_s))
        except subprocess.TimeoutExpired:
            return f"it did not end within {deadline_s:g} s"
        finally:
            end_session(process.pid)
            process.wait()

    def forked(self, arguments: list[str], deadline_s: float) -> str:
        """Run in a fork of a Python that has the libraries loaded."""
        zygote = self._running()
        assert zygote.stdin is not None
        request = {"arguments": arguments, "errors": str(self._errors)}
        zygote.stdin.write(json.dumps(request).encode() + b"\n")
        zygote.stdin.flush()
        pid = int(self._line(zygote, START_S) or 0)
        if not pid:
            raise RuntimeError("the process that forks the runs does not answer")
        try:
            status = self._line(zygote, deadline_s)
            if status:
                return self._outcome(int(status))
        finally:
            end_session(pid)
        self._line(zygote, END_S)
        return f"it did not end within {deadline_s:g} s"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._zygote is None or self._zygote.poll() is not None:
            self._zygote = subprocess.Popen(
                command(self.tier, "tests.accuracy.zygote"),
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        return self._zygote

    def _line(self, zygote: subprocess.Popen[bytes], within_s: float) -> str:
        """The next line; empty when none came in time. Unbuffered: a byte at a time."""
        assert zygote.stdout is not None
        text, until = b"", time.monotonic() + within_s
        while not text.endswith(b"\n"):
            left = max(0.0, until - time.monotonic())
            if not select.select([zygote.stdout], [], [], left)[0]:
                return ""
            byte = zygote.stdout.read(1)
            if not byte:
                return ""
            text += byte
        return text.decode().strip()

    def _outcome(self, status: int) -> str:
        if status == 0:
            return ""
        text = self._errors.read_text(encoding="utf-8", errors="replace").strip()
        last = (text.splitlines() or [""])[-1]
        return f"skipped: {last}" if status == SKIPPED else f"exit status {status}: {last}"


def why_not(tier: str) -> str:
    """What a tier lacks on this machine; empty where nothing is lacking."""
    if not sys.platform.startswith("linux") and tier != "full":
        return "what a process may see of another can be refused on Linux only"
    if tier == "no_ptrace" and os.geteuid() == 0 and shutil.which("capsh") is None:
        return "root keeps every right without capsh (Debian: libcap2-bin)"
    return ""


def command(tier: str, module: str) -> list[str]:
    """How a module is run. Without ptrace root gives up the right that overrides `one.main`'s wish
    not to be looked at."""
    words = [sys.executable, "-m", module]
    if tier == "no_ptrace" and os.geteuid() == 0:
        words = ["capsh", "--drop=cap_sys_ptrace", "--", "-c", 'exec "$0" "$@"', *words]
    return words


def environment(tier: str, data: Path) -> dict[str, str]:
    """In the tier in_process the sampler finds nothing where it looks for /proc."""
    made = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "IOSCOPE_ACCURACY_DATA": str(data),
        "HF_HOME": str(data / "hf"),
        "HF_HUB_OFFLINE": "1",
    }
    if tier == "in_process":
        made["IOSCOPE_PROC"] = str(data / "no-proc")
    return made


def end_session(pid: int) -> None:
    """Kill a process and what it left in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
