"""What one process may see of another, found by trying, never by reading messages."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from dataclasses import dataclass

from jupyter_ioscope.capture import procfs

_PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
YAMA_ASKS = 1  # the level at which a process must say who may look at it
_PTRACE_SEIZE = 0x4206  # linux/ptrace.h


@dataclass(frozen=True)
class Rights:
    """What the helper process may see of the watched process.

    Attributes:
        attach: it may read its memory, so that py-spy works.
        reason: why not, one sentence; empty where `attach` is true.
        syscall: it may see which system call a thread is in.
        yama: level of the Yama security module, None where it is not there.
        helper_pid: the process that looks; 0 when there is none.
        stacks: where stacks come from: "py-spy", "in-process" (the caller starts
            `stacks.InProcessStacks` in the kernel and in the workers), "off".
    """

    attach: bool
    reason: str
    syscall: bool
    yama: int | None
    helper_pid: int
    stacks: str


def allow_tracer(helper_pid: int) -> bool:
    """Let `helper_pid` and its children look at the calling process; 0 takes it back.

    Only Yama level 1 asks for it. Without Yama the call fails with EINVAL, which is harmless.
    Returns whether the kernel took note. Not inherited: each worker calls it for itself.
    """
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_PTRACER, helper_pid, 0, 0, 0) == 0)
    return False


def yama_level(proc: str = "/proc") -> int | None:
    """Level of Yama's ptrace scope, or None where the kernel has no Yama."""
    with contextlib.suppress(OSError, ValueError):
        return int(procfs.read(f"{proc}/sys/kernel/yama/ptrace_scope", 16))
    return None


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def may_read_memory(pid: int) -> int:
    """0 if `process_vm_readv` on `pid` is permitted, else the error number.

    The page at address 0 is asked for: it is never mapped, so a permitted call fails with EFAULT
    and nothing of the process is read or stopped.
    """
    if not sys.platform.startswith("linux"):
        return errno.ENOSYS
    try:
        call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return errno.ENOSYS
    here = ctypes.create_string_buffer(8)
    local = _Vector(ctypes.addressof(here), 8)
    remote = _Vector(0, 8)
    one = ctypes.c_ulong(1)
    result = call(pid, ctypes.byref(local), one, ctypes.byref(remote), one, ctypes.c_ulong(0))
    failed = ctypes.get_errno() if result < 0 else 0
    return 0 if failed == errno.EFAULT else failed


def may_trace(pid: int) -> int:
    """0 if `PTRACE_SEIZE` on `pid` is permitted, else the error number.

    Done in a forked child that ends at once: the kernel then lets go of the seized process
    without ever stopping it, whereas an explicit detach would have to stop it first.
    """
    if not sys.platform.startswith("linux"):
        return errno.ENOSYS
    library = ctypes.CDLL(None, use_errno=True)
    child = os.fork()
    if child == 0:
        code = 255
        try:
            library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long] + [ctypes.c_void_p] * 2
            done = library.ptrace(_PTRACE_SEIZE, pid, None, None)
            code = 0 if done == 0 else ctypes.get_errno() or 255
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def sees_calls(proc: str, pid: int) -> bool:
    """Whether the system call a thread of `pid` is in can be read."""
    with contextlib.suppress(OSError):
        return bool(procfs.read(f"{proc}/{pid}/syscall", 256))
    return False


def why_refused(pid: int, error: int, yama: int | None) -> str:
    """One sentence about a refused attach, for the report."""
    if not sys.platform.startswith("linux"):
        return "attaching to a process works on Linux only"
    text = f"reading the memory of process {pid} is refused ({os.strerror(error)})"
    if error == errno.ESRCH:
        return f"process {pid} is gone"
    if yama == 3:
        return f"{text}: Yama's ptrace_scope is 3, which forbids it to everybody"
    if yama == 2:
        return f"{text}: Yama's ptrace_scope is 2, which forbids it to all but administrators"
    if error == errno.EPERM and may_trace(pid) == 0:
        return f"{text}: a filter of this container forbids process_vm_readv"
    return f"{text}: this user or container lacks the right (SYS_PTRACE)"
