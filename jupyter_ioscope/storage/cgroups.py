"""Reads this process's control groups, version 1, version 2 and both at once.

Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/. Everything is read
below `root`, so that a test can bring a machine of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jupyter_ioscope.storage import mounts

# A group without a limit says so with "max", or (version 1) with a number near the largest.
_NO_LIMIT = 1 << 60


class Groups:
    """The folders of the control groups that this process is in, from its own up to the root."""

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)
        self._folders: dict[str, tuple[Path, ...]] = {}
        table = mounts.parse(self.text("proc/self/mountinfo"))
        for line in self.text("proc/self/cgroup").splitlines():
            number, controllers, path = [*line.split(":", 2), "", ""][:3]
            if number == "0":
                self._add("", path, [row for row in table if row.kind == "cgroup2"])
                continue
            for name in controllers.split(","):
                own = [row for row in table if row.kind == "cgroup" and name in row.options]
                self._add(name, path, own)

    def _add(self, controller: str, path: str, found: list[mounts.Mount]) -> None:
        for mount in found:
            base = self._root / mount.point.lstrip("/")
            # In a container the mount often shows the group itself, while the path is the host's.
            below = path[len(mount.root) :] if path.startswith(mount.root) else ""
            if ".." in below.split("/"):
                below = ""  # a group outside of what this container may see
            folder = base / below.strip("/")
            if not folder.is_dir():
                folder = base
            above = folder.parents[: len(folder.parts) - len(base.parts)]
            self._folders.setdefault(controller, (folder, *above))

    @property
    def version(self) -> str:
        """ "1", "2", "1 and 2", or "" where there are none."""
        old = any(self._folders.keys() - {""})
        return " and ".join(["1"] * old + ["2"] * ("" in self._folders))

    def text(self, path: str) -> str:
        """A file below the root; "" where it cannot be read."""
        return _text(self._root / path)

    def exists(self, path: str) -> bool:
        """Whether there is something of that name below the root."""
        return (self._root / path).exists()

    def listed(self, path: str) -> list[str]:
        """Names in a folder below the root; empty where it cannot be read."""
        with contextlib.suppress(OSError):
            return sorted(entry.name for entry in (self._root / path).iterdir())
        return []

    def names(self) -> str:
        """The text of `/proc/self/cgroup`: names that runtimes give to their groups."""
        return self.text("proc/self/cgroup")

    def folders(self, controller: str) -> tuple[tuple[Path, ...], bool]:
        """(folders from the own group upwards, whether they are of version 2)."""
        old = self._folders.get(controller)
        return (old, False) if old else (self._folders.get("", ()), True)

    def smallest(self, controller: str, new: str, old: str) -> tuple[int, str] | None:
        """(limit, file) of the smallest number in a file of that name, own group to root."""
        found = []
        for path in self._files(controller, new, old):
            text = _text(path).strip()
            if text.isdigit() and int(text) < _NO_LIMIT:
                found.append((int(text), str(path)))
        return min(found, default=None)

    def memory(self) -> Memory | None:
        """Of the groups with a limit, from the own one upwards, that with the least room left; None
        where there is no limit."""
        folders, new = self.folders("memory")
        limit_name, used_name = _MEMORY[new]
        found = []
        for folder in folders:
            limit, used = (_text(folder / name).strip() for name in (limit_name, used_name))
            if limit.isdigit() and int(limit) < _NO_LIMIT:
                held = int(used) if used.isdigit() else 0
                cached = sum(_cached(folder, "" if new else "total_"))
                path = str(folder / limit_name)
                found.append(Memory(int(limit), held, min(held, cached), path))
        return min(found, key=lambda row: row.left_bytes, default=None)

    def _files(self, controller: str, new: str, old: str) -> Iterator[Path]:
        folders, is_new = self.folders(controller)
        name = new if is_new else old
        if name:
            yield from (folder / name for folder in folders)

    def cpu_quota(self) -> tuple[float, str] | None:
        """(cores, file) of the smallest CPU quota; None without one."""
        folders, new = self.folders("cpu")
        found = []
        for folder in folders:
            if new:
                quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
                path = folder / "cpu.max"
            else:
                path = folder / "cpu.cfs_quota_us"
                quota, period = _text(path).strip(), _text(folder / "cpu.cfs_period_us").strip()
            if quota.isdigit() and period.isdigit() and int(period):
                found.append((int(quota) / int(period), str(path)))
        return min(found, default=None)

    def throttling(self) -> tuple[float, float, str] | None:
        """(share of periods that were throttled, seconds throttled, file), since the group began.

        Of the folder that has been throttled most; None where it is not counted.
        """
        rows = []
        for folder in self.folders("cpu")[0]:
            numbers = key_values(_text(folder / "cpu.stat"))
            periods = numbers.get("nr_periods", 0)
            if periods > 0:
                seconds = numbers.get("throttled_usec", 0) / 1e6
                seconds += numbers.get("throttled_time", 0) / 1e9
                share = numbers.get("nr_throttled", 0) / periods
                rows.append((share, seconds, str(folder / "cpu.stat")))
        return max(rows, default=None)

    def memory_kills(self) -> int:
        """Processes of this group that the kernel killed for want of memory; -1 if unknown."""
        folders, new = self.folders("memory")
        for folder in folders[:1]:
            name = "memory.events" if new else "memory.oom_control"
            return key_values(_text(folder / name)).get("oom_kill", -1)
        return -1

    def io_limits(self) -> tuple[IoLimit, ...]:
        """Limits on devices, of the own group and those above."""
        folders, new = self.folders("blkio")
        if not new and not folders:
            return ()
        found: list[IoLimit] = []
        for folder in folders:
            found += _io_max(folder) if new else _blkio(folder)
        if not new and "" in self._folders:
            for folder in self._folders[""]:
                found += _io_max(folder)
        return tuple(found)

    def io_weight(self) -> tuple[int, str] | None:
        """(weight, file) of the own group; 100 is the default in version 2 and with BFQ."""
        folders, new = self.folders("blkio")
        for folder in folders[:1]:
            for name in _WEIGHTS[new]:
                words = _text(folder / name).split()
                if words and words[-1].isdigit():
                    return int(words[-1]), str(folder / name)
        return None


class Memory(NamedTuple):
    """Memory of one group. `used_bytes` holds `cached_bytes` of files, which the kernel drops when
    programs need the room: a loader that reads more than fits fills every limit with them."""

    limit_bytes: int
    used_bytes: int
    cached_bytes: int
    source: str

    @property
    def held_bytes(self) -> int:
        """By programs: what cannot just be dropped."""
        return self.used_bytes - self.cached_bytes

    @property
    def left_bytes(self) -> int:
        return max(0, self.limit_bytes - self.held_bytes)


_MEMORY = (("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current"))


def _cached(folder: Path, prefix: str) -> Iterator[int]:
    """Pages of files on the two lists from which the kernel takes them back; memory of tmpfs and
    /dev/shm is on others. `prefix` of version 1 counts the groups below, too."""
    numbers = key_values(_text(folder / "memory.stat"))
    return (max(0, numbers.get(f"{prefix}{name}_file", 0)) for name in ("inactive", "active"))


_WEIGHTS = (("blkio.bfq.weight", "blkio.weight"), ("io.weight", "io.bfq.weight"))


class IoLimit(NamedTuple):
    """One limit of a control group on one device. `what` is "read bytes", "write requests", ..."""

    device: str  # "major:minor"
    what: str
    per_s: int
    source: str


_IO_MAX = {
    "rbps": "read bytes",
    "wbps": "write bytes",
    "riops": "read requests",
    "wiops": "write requests",
}
_BLKIO = {
    "read_bps": "read bytes",
    "write_bps": "write bytes",
    "read_iops": "read requests",
    "write_iops": "write requests",
}


def _io_max(folder: Path) -> list[IoLimit]:
    path, found = folder / "io.max", []
    for line in _text(path).splitlines():
        device, *words = line.split() or [""]
        for word in words:
            name, _, value = word.partition("=")
            if name in _IO_MAX and value.isdigit():
                found.append(IoLimit(device, _IO_MAX[name], int(value), str(path)))
    return found


def _blkio(folder: Path) -> list[IoLimit]:
    found = []
    for name, what in _BLKIO.items():
        path = folder / f"blkio.throttle.{name}_device"
        for line in _text(path).splitlines():
            words = line.split()
            if len(words) == 2 and words[1].isdigit():
                found.append(IoLimit(words[0], what, int(words[1]), str(path)))
    return found


def key_values(text: str) -> dict[str, int]:
    """Lines of `name number`."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2:
            with contextlib.suppress(ValueError):
                found[words[0]] = int(words[1])
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
