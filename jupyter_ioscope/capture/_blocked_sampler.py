"""Takes the stacks of this process's blocked threads, from a thread beside them.

Every instant is drawn at random, and one instant takes well under 0.1 ms. What is written are raw
texts, so that nothing is judged while the clock runs.
"""

from __future__ import annotations

import contextlib
import functools
import json
import opcode
import os
import platform
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from jupyter_ioscope.capture import procfs
from jupyter_ioscope.capture._blocked_threads import (
    Exact,
    OwnThread,
    Reader,
    lock_calls,
    name_this_thread,
    target_of,
)
from jupyter_ioscope.capture.frames import serves_notebook
from jupyter_ioscope.capture.threads import Key, Keys

RATE_HZ = 20.0
NAME = "ioscope blocked"  # `frames.serves_notebook` knows the beginning

_FLUSH_NS = 1_000_000_000
_LEARN_NS = 250_000_000
_LATE_NS = 20_000_000  # four switch intervals: any thread that runs Python lets go before
_INSTANT_NS = 3_000_000  # below the switch interval (5 ms): nobody can have taken the GIL
_OTHERS_EVERY = 2  # instants: then one of the threads beside the main one is looked at as well
_MAX_STACKS = 20_000  # different ones a process
_MAX_INSTANTS = 20_000  # of all threads, before every second one is forgotten

_RESUME = opcode.opmap.get("RESUME", -1)  # of Python 3.11 and later: a function begins here

Place = tuple[Any, int]  # a code object and a line

PAGE_FAULT: Key = (b"D", b"-1", b"", b"")  # what `states.classify` calls a page fault


class BlockedSampler:
    """Samples the threads of its own process until `stop`.

    A thread is noted where it was blocked. Where this sampler had to wait for the GIL first, the
    instant is not fair: it comes when another thread lets go, that is, at the beginning of a wait.
    Such instants are dropped, with two exceptions. A thread in line for the GIL is kept where more
    than one stand there (one alone stands behind this sampler). And where the sampler was kept
    waiting for more than 20 ms by a thread that met major page faults and did not run meanwhile,
    that thread kept the lock while it was blocked. It lets go when the call into a C library
    returns, or else when it next calls a function: the stack it has then stands for the instants
    that were missed.

    Args:
        path: file that grows by a line a second, see `_blocked_read`.
        main_tid: operating system's id of the thread of interest.
        rate_hz: instants a second.
    """

    def __init__(self, path: str, main_tid: int, rate_hz: float = RATE_HZ) -> None:
        self._path, self._main_tid = path, main_tid
        self._period_ns = int(1e9 / rate_hz)
        self._pid = os.getpid()
        self._gate = threading.Lock()  # open when it shall end: cheaper to wait for than an Event
        self._gate.acquire()
        self._thread: threading.Thread | None = None
        self._random = random.Random()  # the user's own stays as it is

    def start(self) -> None:
        """Begin; harmless when repeated.

        Raises:
            OSError: the file cannot be made, `/proc` is not there, or Python has no GIL.
        """
        if self._thread is not None:
            return
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise OSError("this Python runs without the GIL, which keeps stack and state together")
        read = Reader()
        self._calls = lock_calls(platform.machine())
        main = OwnThread(self._main_tid, read, self._calls)
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            main.close()
            raise
        self._reader = read
        self._known: dict[int, OwnThread | None] = {}  # by identity; None: not to be looked at
        self._others: list[tuple[int, OwnThread]] = []
        self._main = main
        # Python's own note of a thread's number may be the parent's after a fork.
        here = threading.get_native_id() == self._main_tid
        self._main_ident = threading.get_ident() if here else 0
        self._names: dict[int, str] = {}
        self._before: Exact = main.exact()
        self._faulting = False
        self._keys = Keys()
        self._stacks: dict[tuple[Place, ...], int] = {}
        self._fresh = _Fresh(_interpreter_data())
        self._sent_keys = 0
        self._instants = self._contended = self._missed = self._written = 0
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End and write what is left. Never raises; harmless in a forked child."""
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._pid:
            return
        self._gate.release()
        thread.join(2.0)

    def forget(self) -> None:
        """In a forked child: close what was inherited. The parent's thread is not here."""
        if os.getpid() != self._pid and self._thread is not None:
            self._thread = None
            self._close()

    # -- in the sampler's thread -------------------------------------------------------------------

    def _run(self) -> None:
        try:
            name_this_thread(NAME)  # so that the helper process knows it as ours
            self._loop()
        except Exception:  # of the process that is looked at, nothing may fail
            pass
        finally:
            with contextlib.suppress(Exception):
                self._flush()
            self._close()

    def _close(self) -> None:
        self._reader.close_all()
        with contextlib.suppress(OSError):
            os.close(self._file)

    def _loop(self) -> None:
        beat_ns = flushed_ns = time.monotonic_ns()
        learnt_ns = beat_ns
        self._learn()
        while True:
            due_ns = beat_ns + int(self._random.random() * self._period_ns)
            gave_up = _times_given_up()
            if self._gate.acquire(timeout=max(0.0, (due_ns - time.monotonic_ns()) / 1e9)):
                return
            # It slept once; each further time it let go of its core was for the GIL.
            waited = _times_given_up() - gave_up > 1
            self._instant(due_ns, waited)
            now_ns = time.monotonic_ns()
            beat_ns = max(beat_ns + self._period_ns, now_ns - self._period_ns)
            if now_ns - learnt_ns > _LEARN_NS:
                learnt_ns = now_ns
                self._learn()
                self._look_for_faults()
            if now_ns - flushed_ns > _FLUSH_NS:
                flushed_ns = now_ns
                self._flush()
                if not os.path.exists(self._path):
                    return  # the profile is over and took its folder along

    def _instant(self, due_ns: int, waited: bool) -> None:
        now_ns = time.monotonic_ns()
        self._instants += 1
        self._contended += waited
        if waited and not self._faulting and not self._others:
            return  # nothing that is seen now would be kept
        # States before stacks: most often the threads run, and then nothing more needs a look. No
        # thread can go on in Python between the two, for this one keeps the GIL.
        found = [
            (ident, thread, *state)
            for ident, thread in self._chosen()
            if (state := self._state(ident, thread)) is not None
        ]
        if not found and not self._faulting:
            return
        frames = sys._current_frames()
        # This very frame is among them: a ring of frame and dict that would keep all other frames,
        # and the user's batches in them, until the garbage collector comes.
        frames.pop(threading.get_ident(), None)
        found = [row for row in found if row[0] in frames]
        stacks = {ident: tuple(_places(frames[ident])) for ident, *_ in found}
        late = self._faulting and self._kept_waiting(due_ns, now_ns) and waited
        main_stack = _after_missed(frames.get(self._main_ident)) if late else ()
        main_blocked = not waited and any(thread is self._main for _, thread, *_ in found)
        turns = self._main.turns() if main_blocked else 0
        if time.monotonic_ns() - now_ns > _INSTANT_NS:
            return  # this thread was stopped in the middle: stacks and states may not fit together
        if late:
            self._note_missed(due_ns, now_ns, main_stack)
        others_hold = self._behind_others([key for _, _, key, _ in found])
        for ident, thread, key, descriptor in found:
            if waited and key not in others_hold:
                continue
            if not waited and self._is_gil(key) and key not in others_hold:
                continue
            if descriptor >= 0:
                whole = key[1] in self._calls.file_locks
                key = (*key[:3], target_of(descriptor, whole))
            own = turns if thread is self._main else 0
            self._note(thread.tid, key, stacks[ident], now_ns, own)

    def _chosen(self) -> list[tuple[int, OwnThread]]:
        others = self._others
        if not others or self._instants % _OTHERS_EVERY:
            return [(self._main_ident, self._main)]
        return [(self._main_ident, self._main), self._random.choice(others)]

    def _state(self, ident: int, thread: OwnThread) -> tuple[Key, int] | None:
        try:
            return thread.blocked_in()
        except (OSError, ValueError):
            if thread is not self._main:
                self._forget(ident)
            return None

    def _look_for_faults(self) -> None:
        """Exact counters are read at every instant only while the main thread meets page faults."""
        before, self._before = self._before, self._main.exact()
        self._faulting = self._before.major_faults > before.major_faults

    def _kept_waiting(self, due_ns: int, now_ns: int) -> bool:
        """Whether this instant is late because the main thread was blocked in page faults."""
        before, self._before = self._before, self._main.exact()
        late_ns = now_ns - due_ns
        busy_ns = self._before.busy_ns - before.busy_ns
        faulted = self._before.major_faults > before.major_faults
        return late_ns > _LATE_NS and faulted and 2 * busy_ns < late_ns

    def _note_missed(self, due_ns: int, now_ns: int, stack: tuple[Place, ...]) -> None:
        turns = self._main.turns()
        for when in range(due_ns, now_ns, self._period_ns):
            self._missed += 1
            self._note(self._main.tid, PAGE_FAULT, stack, when, turns)

    def _behind_others(self, keys: list[Key]) -> frozenset[Key]:
        """Keys of those in line for the GIL, where it is not for this sampler alone."""
        line = [key for key in keys if self._is_gil(key)]
        return frozenset(line) if len(line) > 1 else frozenset()

    def _is_gil(self, key: Key) -> bool:
        number, *arguments = key[1].split(b" ")
        if number not in self._calls.futex or not arguments:
            return False
        address = int(arguments[0], 16)
        return any(start <= address < end for start, end in self._fresh.gil)

    def _note(self, tid: int, key: Key, stack: tuple[Place, ...], when_ns: int, turns: int) -> None:
        number = self._stacks.get(stack)
        if number is None:
            if len(self._stacks) >= _MAX_STACKS:
                return
            number = self._stacks[stack] = len(self._stacks)
            self._fresh.stacks.append([_text(place) for place in reversed(stack)])
        self._fresh.seen.append((tid, self._keys.number(key), number, when_ns, turns))

    def _learn(self) -> None:
        """Which threads there are. Those of the notebook and of this package are passed over."""
        alive = set()
        for thread in threading.enumerate():
            ident, tid = thread.ident, thread.native_id
            if ident is None or tid is None:
                continue
            alive.add(ident)
            if self._main_ident in (0, ident) and (self._main_ident or tid == self._main_tid):
                self._main_ident = ident
                self._names[self._main_tid] = thread.name
            elif ident not in self._known:
                self._known[ident] = None
                self._names[tid] = thread.name
                if not serves_notebook(thread.name):
                    with contextlib.suppress(OSError):
                        self._known[ident] = OwnThread(tid, self._reader, self._calls)
        for ident in self._known.keys() - alive:
            self._forget(ident)
        self._others = [(key, item) for key, item in self._known.items() if item is not None]

    def _forget(self, ident: int) -> None:
        thread = self._known.pop(ident, None)
        if thread is not None:
            thread.close()
            self._others = [row for row in self._others if row[0] != ident]

    def _flush(self) -> None:
        fresh = self._fresh
        keys = list(self._keys.numbers)[self._sent_keys :]
        self._sent_keys += len(keys)
        self._written += len(fresh.seen)
        line = {
            "pid": self._pid,
            "keys": [[part.decode("utf-8", "backslashreplace") for part in key] for key in keys],
            "stacks": fresh.stacks,
            "seen": fresh.seen,
            "names": self._names,
            "gil": fresh.gil,
            "rate_hz": 1e9 / self._period_ns,
            "instants": self._instants,
            "contended": self._contended,
            "missed": self._missed,
            "cpu_ns": time.thread_time_ns(),
        }
        self._fresh = _Fresh(fresh.gil)
        if self._written > _MAX_INSTANTS:
            # The reader forgets every second instant so far when the rate is halved.
            self._written //= 2
            self._period_ns *= 2
        raw = json.dumps(line, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        with contextlib.suppress(OSError):  # a full disk must not hurt the process looked at
            os.write(self._file, raw)


class _Fresh:
    """What was noted since the last line."""

    def __init__(self, gil: tuple[tuple[int, int], ...]) -> None:
        self.gil = gil
        self.stacks: list[list[tuple[str, str, int]]] = []
        self.seen: list[tuple[int, int, int, int, int]] = []


@functools.cache
def _interpreter_data() -> tuple[tuple[int, int], ...]:
    """Where the interpreter's own data lies. Found once, and before a worker is forked, which then
    has it at the same place: reading the map of a large process takes milliseconds."""
    return procfs.interpreter_data("/proc", os.getpid())


def _places(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno or 0
        frame = frame.f_back


def _after_missed(frame: FrameType | None) -> tuple[Place, ...]:
    """The stack of a thread that let go of the GIL after a wait. Where it did so on entering a
    function, the wait was before, in the caller."""
    if frame is not None and frame.f_back is not None and _just_entered(frame):
        frame = frame.f_back
    return tuple(_places(frame))


def _just_entered(frame: FrameType) -> bool:
    code = frame.f_code.co_code
    first = next((at for at in range(0, len(code), 2) if code[at] == _RESUME), 0)
    return frame.f_lasti <= first


def _text(place: Place) -> tuple[str, str, int]:
    code, line = place
    return getattr(code, "co_qualname", code.co_name), code.co_filename, line


def _times_given_up() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
