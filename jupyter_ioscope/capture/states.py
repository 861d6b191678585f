"""What a sampled thread was doing, from what the Linux kernel says about it.

Pure functions of recorded texts: nothing is read here. The inputs are the state character of
`/proc/<pid>/task/<tid>/stat`, the text of its `syscall` (empty where the right is missing), the
text of its `wchan`, and for a call on a descriptor the target of `/proc/<pid>/fd/<n>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.capture import syscalls

Ranges = Sequence[tuple[int, int]]

# Kernel functions a thread sleeps in, by what they wait for (names of Linux 4.18 to 6.18; seen on
# 6.18 or read in the sources). Matched as prefixes, first match wins.
_WCHANS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("futex", ("futex_", "do_futex")),
    ("sleep", ("do_nanosleep", "hrtimer_nanosleep")),
    ("pipe", ("pipe_", "anon_pipe_", "wait_for_partner", "unix_", "fifo_")),
    ("poll", ("poll_schedule", "do_poll", "do_sys_poll", "do_select", "ep_poll", "do_epoll")),
    (
        "network",
        ("wait_woken", "sk_", "__skb_wait", "inet_", "__inet_", "tcp_", "skb_wait", "sock_"),
    ),
    ("lock", ("locks_lock_inode", "posix_lock_inode", "flock_lock_inode", "fcntl_setlk")),
    ("wait_child", ("do_wait", "kernel_wait", "do_fork", "kernel_clone", "wait_for_vfork")),
    ("page_fault", ("handle_userfault", "filemap_fault", "__lock_folio_or_retry", "swap_")),
    (
        "disk",
        (
            "folio_wait",
            "folio_lock",
            "__folio_lock",
            "wait_on_page",
            "io_schedule",
            "request_wait_answer",
            "fuse_",
            "rpc_wait",
            "nfs",
            "p9_",
            "jbd2",
            "ext4",
            "xfs",
            "btrfs",
            "submit_bio",
            "blk_",
            "rq_qos",
            "__wait_on_buffer",
            "wait_on_buffer",
        ),
    ),
)

# Waiting for another thread's change of the memory map, not for the page itself.
_MAP_LOCKS = ("rwsem_", "down_", "__down", "vma_start")
_FUTEX_PRIVATE = 128  # FUTEX_PRIVATE_FLAG of linux/futex.h


def classify(
    char: str, call: str, wchan: str = "", link: str = "", gil: Ranges = (), arch: str = "x86_64"
) -> str:
    """One of `model.readings.STATES`.

    Args:
        char: state character of `stat`.
        call: text of `syscall`: "running", "-1 sp pc", or number and arguments; "" if refused.
        wchan: kernel function slept in; "" or "0" where unknown.
        link: what the descriptor in the first argument points at; "" where not looked up.
        gil: address ranges of the interpreter's own writable data.
        arch: machine whose syscall numbers `call` uses ("x86_64" or "aarch64").
    """
    if char == "R" or call == "running":
        return "running"
    if char not in "SDK":  # stopped, traced, dead
        return "blocked"
    if not call:
        return _by_wchan(char, wchan)
    number, *arguments = call.split(" ", 3)
    if number == "-1":
        return _outside_calls(char, wchan)
    kind = syscalls.kind(int(number), arch)
    if kind == "futex":
        return _futex(arguments, gil)
    if kind == "select":
        return "sleep" if arguments[:1] == ["0x0"] else "poll"
    if kind == "descriptor":
        return _descriptor(char, wchan, link)
    if kind == "file":
        return "disk"
    if kind == "socket":
        # A local socket is a pipe between processes of this machine, not a network.
        return "pipe" if wchan.startswith("unix_") else "network"
    return kind or _by_wchan(char, wchan)


def _futex(arguments: Sequence[str], gil: Ranges) -> str:
    try:
        address, operation = int(arguments[0], 16), int(arguments[1], 16)
    except (IndexError, ValueError):
        return "futex"
    if any(start <= address < end for start, end in gil):
        return "gil"
    return "futex" if operation & _FUTEX_PRIVATE else "lock"


def _descriptor(char: str, wchan: str, link: str) -> str:
    """Reading or writing a descriptor: what it points at decides."""
    if link.startswith("pipe:"):
        return "pipe"
    if link.startswith("socket:"):
        return "pipe" if wchan.startswith("unix_") else "network"
    if link.startswith("/dev/") and not link.startswith("/dev/shm/"):
        return "disk" if char == "D" else "blocked"
    if link.startswith("/"):
        # Network and user-space file systems also wait in the interruptible state.
        return "disk"
    return _by_wchan(char, wchan)


def _outside_calls(char: str, wchan: str) -> str:
    if wchan.startswith(_MAP_LOCKS):
        return "blocked"
    return "page_fault" if char == "D" or wchan.startswith("handle_userfault") else "blocked"


def _by_wchan(char: str, wchan: str) -> str:
    for state, prefixes in _WCHANS:
        if wchan.startswith(prefixes):
            return state
    return "disk" if char == "D" else "blocked"
