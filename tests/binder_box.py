"""Starts commands as on a small shared server: 2 GB of memory, one core, nobody may attach.

The memory limit needs root and a memory control group (version 1 or 2); without, `Box.limited` is
False and the rest holds all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY_BYTES = 2 << 30
_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2
# Classic BPF of seccomp(2): load the system call's number, compare, allow or answer EPERM.
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
# ptrace, process_vm_readv, process_vm_writev
_REFUSED = {"x86_64": (101, 310, 311), "aarch64": (117, 270, 271)}


class _Line(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("lines", ctypes.POINTER(_Line)))


def refuse_attaching() -> None:
    """From now on this process and what it starts may attach to no process, as containers' default.

    Raises:
        OSError: this system has no such filter.
    """
    calls = _REFUSED[platform.machine()]
    lines = [_Line(_LOAD, 0, 0, 0)]
    for number, call in enumerate(calls):
        lines.append(_Line(_EQUAL, len(calls) - number, 0, call))
    lines += [_Line(_RETURN, 0, 0, _ALLOW), _Line(_RETURN, 0, 0, _EPERM)]
    program = _Program(len(lines), (_Line * len(lines))(*lines))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


@dataclass
class Box:
    """The control group, and how commands get into it. `group` is None where there is none."""

    group: Path | None

    @property
    def limited(self) -> bool:
        return self.group is not None

    def popen(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a command, in a process group of its own; what it says goes to the file `log`."""
        with log.open("w") as output:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environment),
                preexec_fn=self._enter,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _enter(self) -> None:
        if self.group is not None:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        refuse_attaching()

    def peak_bytes(self) -> int:
        """The most memory that was in use, page cache included; 0 where nobody counted."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if self.group is not None and (self.group / name).exists():
                return int((self.group / name).read_text())
        return 0

    def killed(self) -> int:
        """How many processes were ended for want of memory."""
        for name in ("memory.oom_control", "memory.events"):
            if self.group is not None and (self.group / name).exists():
                fields = dict(line.split() for line in (self.group / name).read_text().splitlines())
                return int(fields.get("oom_kill", 0))
        return 0


@contextlib.contextmanager
def box() -> Iterator[Box]:
    """A box; its control group is gone afterwards."""
    group = _made()
    try:
        yield Box(group)
    finally:
        if group is not None:
            _remove(group)


def _made() -> Path | None:
    for root, limit in ((_V1, "memory.limit_in_bytes"), (_V2, "memory.max")):
        group = root / f"ioscope-box-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(MEMORY_BYTES))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        return group
    return None


def _remove(group: Path) -> None:
    for _ in range(100):  # processes that have ended take a moment to leave
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)
