"""An io_uring of the kernel, driven with plain system calls: for reads at a queue depth.

Layouts and numbers are those of linux/io_uring.h; system call numbers 425 and 426 are the same on
every architecture that Python runs on but alpha. The rings are memory shared with the kernel; a
system call lies between every write here and its reading there, and the other way round.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import time
from collections.abc import Iterator

_SETUP, _ENTER = 425, 426
_GETEVENTS = 1  # IORING_ENTER_GETEVENTS
_OP_READ = 22  # IORING_OP_READ, Linux 5.6
# IORING_SETUP_COOP_TASKRUN, _SINGLE_ISSUER and _DEFER_TASKRUN, Linux 6.1: a completion does not
# interrupt the thread that waits for it anyway. fio asks for the same.
_OWN_THREAD = 1 << 8 | 1 << 12 | 1 << 13
# Reads handed over by one call. The kernel holds back more than two until it has them all
# (io_submit_state_start in io_uring/io_uring.c): the device stands idle meanwhile, and answers them
# in one burst, too. Measured at depth 16: all at once 0.79 of fio's requests, two 0.92 to 0.96.
_AT_ONCE = 2
_FLAGS_AT = 8  # bytes into the parameters
_OFF_SQ, _OFF_CQ, _OFF_SQES = 0, 0x8000000, 0x10000000
_PARAMS = struct.Struct("<30I")  # struct io_uring_params
_SQE = struct.Struct("<BBHiQQIIQ24x")  # opcode flags ioprio fd off addr len rw_flags user_data


class Ring:
    """A ring for reads of one size from one file; each of `depth` slots has one under way at most.

    Everything but the offset of a read is written once, so that Python does little for each.

    Raises:
        OSError: the kernel refuses: `why` explains it.
    """

    def __init__(self, depth: int, fd: int = -1, size: int = 0) -> None:
        self._call = ctypes.CDLL(None, use_errno=True)["syscall"]
        params = self._set_up(depth)
        os.set_inheritable(self.fd, False)
        # Made once: to convert seven Python numbers costs as much as the system call itself.
        self._submit, self._wait = ctypes.c_uint(), ctypes.c_uint()
        self._enter = (
            ctypes.c_long(_ENTER), ctypes.c_uint(self.fd), self._submit, self._wait,
            ctypes.c_uint(_GETEVENTS), ctypes.c_void_p(), ctypes.c_size_t(),
        )  # fmt: skip
        words = _PARAMS.unpack(params.raw)
        entries, completions = words[0], words[1]
        sq, cq = words[10:20], words[20:30]
        maps = (
            mmap.mmap(self.fd, sq[6] + 4 * entries, offset=_OFF_SQ),
            mmap.mmap(self.fd, cq[5] + 16 * completions, offset=_OFF_CQ),
            mmap.mmap(self.fd, 64 * entries, offset=_OFF_SQES),
            mmap.mmap(-1, max(1, depth * size)),  # begins at a page, as O_DIRECT wants
        )
        self._maps = maps
        self._sq = memoryview(maps[0]).cast("I")
        self._cq = memoryview(maps[1]).cast("I")
        self._sqes = memoryview(maps[2]).cast("Q")
        self._tail_at, self._array_at = sq[1] // 4, sq[6] // 4
        self._head_at, self._cq_tail_at, self._cqes_at = cq[0] // 4, cq[1] // 4, cq[5] // 4
        self._sq_mask, self._cq_mask = self._sq[sq[2] // 4], self._cq[cq[2] // 4]
        self._tail = self._sq[self._tail_at]
        self._size = size
        self._area = ctypes.c_char.from_buffer(maps[3])
        base = ctypes.addressof(self._area)
        for slot in range(depth if size else 0):
            at = base + slot * size
            _SQE.pack_into(maps[2], 64 * slot, _OP_READ, 0, 0, fd, 0, at, size, 0, slot)

    def _set_up(self, depth: int) -> ctypes.Array[ctypes.c_char]:
        """Make the ring, the kind that completes when its thread asks where the kernel has it."""
        for flags in (_OWN_THREAD, 0):
            params = ctypes.create_string_buffer(_PARAMS.size)
            struct.pack_into("I", params, _FLAGS_AT, flags)
            made = self._call(ctypes.c_long(_SETUP), ctypes.c_uint(depth), params)
            if made >= 0 or not flags or ctypes.get_errno() != errno.EINVAL:
                break
        self.fd = _checked(made)
        return params

    def push(self, slot: int, offset: int) -> None:
        """Ask for the read of a slot; `enter` hands it to the kernel."""
        self._sqes[8 * slot + 1] = offset
        self._sq[self._array_at + (self._tail & self._sq_mask)] = slot
        self._tail = (self._tail + 1) & 0xFFFFFFFF
        self._sq[self._tail_at] = self._tail

    def enter(self, submit: int, wait: int) -> None:
        """Submit what was pushed and wait for `wait` completions.

        Raises:
            OSError: as io_uring_enter(2).
        """
        self._submit.value, self._wait.value = submit, wait
        while True:
            try:
                _checked(self._call(*self._enter))
                return
            except InterruptedError:
                self._submit.value = 0

    def completed(self) -> list[int]:
        """The slots whose read is done.

        Raises:
            OSError: a read failed.
        """
        found, cq, mask, base = [], self._cq, self._cq_mask, self._cqes_at
        head, tail = cq[self._head_at], cq[self._cq_tail_at]
        while head != tail:
            at = base + 4 * (head & mask)
            _refuse_failed(cq[at + 2])
            found.append(cq[at])
            head = (head + 1) & 0xFFFFFFFF
        cq[self._head_at] = head
        return found

    def timed(self, offsets: Iterator[int], depth: int, seconds: float) -> tuple[list[int], float]:
        """As `timed_reads`. What `push`, `enter` and `completed` do is written out here: their
        calls would cost as much as a request."""
        clock, call, enter = time.perf_counter_ns, self._call, self._enter
        submit, wait = self._submit, self._wait
        sq, cq, sqes, following = self._sq, self._cq, self._sqes, offsets.__next__
        array_at, tail_at, mask, tail = self._array_at, self._tail_at, self._sq_mask, self._tail
        head_at, end_at, base, cq_mask = (
            self._head_at,
            self._cq_tail_at,
            self._cqes_at,
            self._cq_mask,
        )
        begun, free, flying, head = [0] * depth, list(range(depth)), 0, cq[self._head_at]
        took: list[int] = []
        start = now = clock()
        until = start + int(seconds * 1e9)
        while True:
            submit.value = 0
            if free and now < until:
                new = free[:_AT_ONCE]
                del free[:_AT_ONCE]
                for slot in new:
                    sqes[8 * slot + 1] = following()
                    sq[array_at + (tail & mask)] = slot
                    tail = (tail + 1) & 0xFFFFFFFF
                    begun[slot] = now
                sq[tail_at] = self._tail = tail
                submit.value = len(new)
                flying += len(new)
            elif not flying:
                return took, (clock() - start) / 1e9
            wait.value = 0 if free and now < until else 1
            if call(*enter) < 0 and ctypes.get_errno() != errno.EINTR:
                _checked(-1)
            now = clock()
            while head != cq[end_at]:
                at = base + 4 * (head & cq_mask)
                if cq[at + 2] > _LARGEST:
                    _refuse_failed(cq[at + 2])
                slot = cq[at]
                free.append(slot)
                took.append(now - begun[slot])
                flying -= 1
                head = (head + 1) & 0xFFFFFFFF
            cq[head_at] = head

    def read(self, slot: int) -> bytes:
        """The bytes that the last read of a slot brought."""
        return self._maps[3][slot * self._size : (slot + 1) * self._size]

    def close(self) -> None:
        """Ends the ring first: until then the kernel may write to the memory of reads under way."""
        os.close(self.fd)
        for view in (self._sq, self._cq, self._sqes):
            view.release()
        del self._area
        for one in self._maps:
            one.close()


_LARGEST = 0x7FFFFFFF  # results are signed; those above are negative: errors


def _refuse_failed(result: int) -> None:
    if result > _LARGEST:
        code = (1 << 32) - result
        raise OSError(code, os.strerror(code))


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def timed_reads(
    fd: int, block: int, offsets: Iterator[int], depth: int, seconds: float
) -> tuple[list[int], float]:
    """Keep `depth` reads under way for `seconds`: (nanoseconds of each, wall seconds).

    Raises:
        OSError: a read failed, or the kernel gives no ring.
    """
    ring = Ring(depth, fd, block)
    try:
        return ring.timed(offsets, depth, seconds)
    finally:
        ring.close()


def why(error: OSError) -> str:
    """Why the kernel gives no ring, and what to do."""
    disabled = _sysctl("io_uring_disabled")
    if error.errno == errno.ENOSYS:
        return (
            "this kernel has no io_uring (Linux 5.1 or newer, CONFIG_IO_URING), or seccomp hides it"
        )
    if error.errno == errno.EPERM and disabled in ("1", "2"):
        return (
            f"kernel.io_uring_disabled is {disabled}: an administrator can allow it with "
            "sysctl kernel.io_uring_disabled=0"
        )
    if error.errno in (errno.EPERM, errno.EACCES):
        return (
            "refused, though the sysctl allows it: a seccomp profile (Docker's default one, for "
            "example) or a security module forbids it"
        )
    if error.errno == errno.ENOMEM:
        return (
            "RLIMIT_MEMLOCK is too small for the rings (ulimit -l), which Linux before 5.12 counts"
        )
    return f"refused: {error.strerror}"


def conditions() -> tuple[tuple[str, str], ...]:
    """What decides whether io_uring may be used here, as names and values."""
    release = os.uname().release
    seccomp = {"0": "no filter", "1": "strict", "2": "a filter is set"}
    mode = _status("Seccomp")
    return (
        ("kernel", release),
        ("kernel.io_uring_disabled", _sysctl("io_uring_disabled") or "not there (before 6.6)"),
        ("kernel.io_uring_group", _sysctl("io_uring_group") or "not there (before 6.6)"),
        ("seccomp of this process", seccomp.get(mode, mode or "not known")),
    )


def _sysctl(name: str) -> str:
    try:
        with open(f"/proc/sys/kernel/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""


def _status(name: str) -> str:
    try:
        with open("/proc/self/status") as file:
            return next((row.split()[1] for row in file if row.startswith(f"{name}:")), "")
    except OSError:
        return ""
