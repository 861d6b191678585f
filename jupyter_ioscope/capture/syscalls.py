"""Numbers of the system calls a thread can be blocked in (linux/arch/*/syscall tables)."""

from __future__ import annotations

# kind -> numbers. "descriptor": what the first argument points at decides; "file": works on a
# path or flushes a file; "select" without descriptors is a sleep (so Python 3.10 does it);
# the others are what they say.
_X86_64: dict[str, tuple[int, ...]] = {
    # read write pread pwrite readv writev sendfile splice preadv pwritev preadv2 pwritev2
    "descriptor": (0, 1, 17, 18, 19, 20, 40, 275, 276, 278, 295, 296, 326, 327, 328),
    # open close stat fstat lstat lseek access msync fsync fdatasync truncate ftruncate getdents
    # rename mkdir rmdir creat link unlink readlink statfs fstatfs sync readahead getdents64
    # fadvise openat mkdirat newfstatat unlinkat renameat readlinkat faccessat sync_file_range
    # fallocate syncfs renameat2 statx openat2 faccessat2 getcwd io_getevents io_uring_enter
    "file": (
        *(2, 3, 4, 5, 6, 8, 21, 26, 74, 75, 76, 77, 78, 79, 82, 83, 84, 85, 86, 87, 89),
        *(137, 138, 162, 187, 208, 217, 221, 257, 258, 262, 263, 264, 267, 269, 277, 285),
        *(306, 316, 332, 426, 437, 439),
    ),
    # connect sendto recvfrom sendmsg recvmsg recvmmsg sendmmsg
    "socket": (42, 44, 45, 46, 47, 299, 307),
    "futex": (202, 449, 455),
    "select": (23, 270),  # select pselect6
    # poll epoll_wait ppoll epoll_pwait epoll_pwait2, and accept accept4: a server
    # waiting for a caller is idle, it does not wait for the network
    "poll": (7, 43, 232, 271, 281, 288, 441),
    "sleep": (35, 230),
    "wait_child": (56, 58, 61, 247, 435),  # clone vfork wait4 waitid clone3
    "lock": (65, 72, 73, 220),  # semop fcntl flock semtimedop
    "pipe": (70, 69, 242, 243),  # msgrcv msgsnd mq_timedsend mq_timedreceive
}
_AARCH64: dict[str, tuple[int, ...]] = {
    "descriptor": (63, 64, 65, 66, 67, 68, 69, 70, 71, 75, 76, 77, 285, 286, 287),
    "file": (
        *(4, 17, 34, 35, 37, 38, 43, 44, 45, 46, 47, 48, 56, 57, 61, 62, 78, 79, 80, 81, 82, 83),
        *(84, 213, 223, 227, 267, 276, 291, 426, 437, 439),
    ),
    "socket": (203, 206, 207, 211, 212, 243, 269),
    "futex": (98, 449, 455),
    "select": (72,),
    "poll": (22, 73, 202, 242, 441),
    "sleep": (101, 115),
    "wait_child": (95, 220, 260, 435),
    "lock": (25, 32, 192, 193),
    "pipe": (182, 183, 188, 189),
}


def _invert(table: dict[str, tuple[int, ...]]) -> dict[int, str]:
    return {number: kind for kind, numbers in table.items() for number in numbers}


_KINDS = {"x86_64": _invert(_X86_64), "aarch64": _invert(_AARCH64)}
_KINDS["amd64"] = _KINDS["x86_64"]
_KINDS["arm64"] = _KINDS["aarch64"]


def kind(number: int, arch: str) -> str:
    """The kind of a system call, or "" where the number or the machine is not known."""
    return _KINDS.get(arch, {}).get(number, "")


def numbers(wanted: str, arch: str) -> frozenset[bytes]:
    """The numbers of a kind as `/proc` writes them."""
    return frozenset(
        str(number).encode() for number, name in _KINDS.get(arch, {}).items() if name == wanted
    )


# Names of the calls a loader is blocked in most, for people: x86_64 and aarch64.
_NAMES: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "pread": (17, 67),
    "pwrite": (18, 68),
    "readv": (19, 65),
    "writev": (20, 66),
    "preadv": (295, 69),
    "sendfile": (40, 71),
    "open": (257, 56),
    "stat": (262, 79),
    "statx": (332, 291),
    "getdents": (217, 61),
    "lseek": (8, 62),
    "close": (3, 57),
    "access": (269, 48),
    "rename": (264, 38),
    "unlink": (263, 35),
    "mkdir": (258, 34),
    "ftruncate": (77, 46),
    "fallocate": (285, 47),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "msync": (26, 227),
    "sync_file_range": (277, 84),
    "flock": (73, 32),
    "fcntl": (72, 25),
    "connect": (42, 203),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "poll": (271, 73),
    "epoll_wait": (281, 22),
    "select": (270, 72),
    "accept": (288, 242),
    "nanosleep": (230, 115),
    "wait": (61, 260),
}
# x86_64 keeps older calls beside the ones that both machines have.
_OLD_X86_64 = {2: "open", 4: "stat", 5: "stat", 6: "stat", 7: "poll", 21: "access", 23: "select",
               35: "nanosleep", 43: "accept", 78: "getdents", 82: "rename", 83: "mkdir",
               87: "unlink", 232: "epoll_wait"}  # fmt: skip


def names(arch: str) -> dict[int, str]:
    """Number of a system call -> its name as people know it; empty for other machines."""
    if arch in ("aarch64", "arm64"):
        return {pair[1]: name for name, pair in _NAMES.items()}
    if arch in ("x86_64", "amd64"):
        return {**_OLD_X86_64, **{pair[0]: name for name, pair in _NAMES.items()}}
    return {}
