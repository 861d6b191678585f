"""Watches all threads of a process tree. Runs in the helper process."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_ioscope.capture.threads import Calls, Keys, Thread

_STILL_AFTER = 4  # counter readings without a change, longer than from one close look to the next
_MAX_SAMPLES = 2_000_000  # of all threads together: 24 MB


class Watch:
    """All threads of a process tree."""

    def __init__(self, proc: str, arch: str) -> None:
        self._proc = proc
        self._calls, self.keys = Calls(arch), Keys()
        self.live: dict[tuple[int, int], Thread] = {}
        self.ended: list[Thread] = []
        self.refused = 0  # threads that could not be opened, though they were there
        self.thinned = 0

    def update(self, found: set[tuple[int, int]]) -> None:
        """Watch the threads newly found. Those that are gone are noticed when read."""
        for pid, tid in found - self.live.keys():
            try:
                self.live[pid, tid] = Thread(self._proc, pid, tid, self._calls, self.keys)
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                self.refused += 1

    def sample(self) -> None:
        for thread in self.live.values():
            thread.sample()
        self._sweep()

    def count(self) -> None:
        for thread in self.live.values():
            thread.count()
        self._sweep()
        if sum(len(thread.sample_ns) for thread in self.all()) > _MAX_SAMPLES:
            self.thinned += 1
            for thread in self.all():
                thread.thin()

    def _sweep(self) -> None:
        gone = [key for key, thread in self.live.items() if thread.ended]
        for key in gone:
            self.ended.append(self.live.pop(key))

    def still(self) -> frozenset[tuple[int, int]]:
        """Threads that have not run for a second: they cannot have made a process meanwhile."""
        return frozenset(
            key for key, item in self.live.items() if item.exact and item.unchanged >= _STILL_AFTER
        )

    def pids(self) -> set[int]:
        return {pid for pid, _ in self.live}

    def all(self) -> Iterator[Thread]:
        yield from self.ended
        yield from self.live.values()

    def close(self) -> None:
        for thread in list(self.live.values()):
            thread.close()
        self._sweep()
