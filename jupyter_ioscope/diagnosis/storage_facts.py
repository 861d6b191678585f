"""Numbers about files, reads, memory and the garbage collector: computed once, or missing with
reason. `Facts.storage` is one of these.

Only Python's own opens are counted: a file that a C library opens (HDF5, LMDB, Arrow, OpenCV) is
in the counters of reads and, where the sampler caught it open, in `held`; not in `opens`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from statistics import median
from typing import NamedTuple

from jupyter_ioscope.diagnosis.loop_facts import LoopFacts
from jupyter_ioscope.diagnosis.phases import Interval, clip, intersect_ns, total_ns, union
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import FileUse, GcPause, HeldFile, ProcessUse
from jupyter_ioscope.model.readings import Series

# File systems whose reads may cross a network, by the kernel's names of them; `fuse.` with
# anything behind it as well (s3fs, sshfs, gcsfuse, ...).
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "glusterfs", "beegfs", "afs")
NETWORK_FILESYSTEMS = frozenset((*_SHARED, "9p", "virtiofs", "fuse"))
_LEAST_LOOP_NS = 1_000_000_000  # four beats of the counters
_OBSERVER = "opened files"  # the gap's name where files were not observed


class Reopened(NamedTuple):
    """A file that one process opened again and again in its fetches.

    `opens` over all `processes` that did so; `per_sample` is opens per sample they fetched.
    """

    path: str
    opens: int
    processes: int
    per_sample: float
    size_bytes: int
    filesystem: str


class Held(NamedTuple):
    """A file that was seen held open, by any library. `opens_per_sample` is what the kernel counted
    since then over the samples fetched since then: at least so many."""

    path: str
    opens: int
    opens_per_sample: float
    size_bytes: int


class StorageFacts:
    """Raises `NotMeasuredError`, with the reason, when asked for what the profile lacks."""

    def __init__(self, facts: LoopFacts) -> None:
        self._facts = facts
        self._profile = facts.profile

    # -- opened files -----------------------------------------------------------------------------

    @cached_property
    def opens(self) -> tuple[FileUse, ...]:
        """Opens for reading inside fetches; empty where nothing was opened."""
        self._need_files()
        if self._facts.loader.workers_before_profile:
            reason = "the workers were already running when the profile began"
            raise NotMeasuredError("files opened in fetches", reason)
        return self._files("fetch", "r", "rw")

    @cached_property
    def opens_per_sample(self) -> float:
        """Python's opens in fetches over the samples fetched."""
        opens = sum(use.opens for use in self.opens)
        return opens / self._samples({use.pid for use in self.opens}) if opens else 0.0

    @cached_property
    def distinct_files(self) -> int:
        """Different files opened in fetches."""
        return len({use.path for use in self.opens})

    @cached_property
    def opens_per_file(self) -> float:
        """How often a process opened the same file in fetches, on average; 0 without opens."""
        files = {(use.path, use.pid) for use in self.opens}
        return sum(use.opens for use in self.opens) / len(files) if files else 0.0

    @cached_property
    def reopened(self) -> tuple[Reopened, ...]:
        """Files that a process opened more than once in fetches, the most opened first."""
        opens: dict[str, dict[int, int]] = {}
        known: dict[str, FileUse] = {}
        for use in self.opens:
            processes = opens.setdefault(use.path, {})
            processes[use.pid] = processes.get(use.pid, 0) + use.opens
            known[use.path] = use
        found = []
        for path, processes in opens.items():
            again = {pid: count for pid, count in processes.items() if count > 1}
            if again:
                count, use = sum(again.values()), known[path]
                share = count / self._samples(set(again))
                found.append(
                    Reopened(path, count, len(again), share, use.size_bytes, use.filesystem)
                )
        return tuple(sorted(found, key=lambda item: -item.opens))

    @cached_property
    def median_file_bytes(self) -> float:
        """Median size of the files opened in fetches, each file once."""
        sizes = {use.path: use.size_bytes for use in self.opens if use.size_bytes >= 0}
        if not sizes:
            raise NotMeasuredError("sizes of the opened files", self._no_opens())
        return float(median(sizes.values()))

    @cached_property
    def filesystems(self) -> tuple[tuple[str, float], ...]:
        """(kind, fraction of the opens in fetches whose kind is known), the largest first."""
        counts: dict[str, int] = {}
        for use in self.opens:
            if use.filesystem:
                counts[use.filesystem] = counts.get(use.filesystem, 0) + use.opens
        total = sum(counts.values())
        if not total:
            raise NotMeasuredError("file systems of the opened files", self._no_opens())
        shares = [(kind, count / total) for kind, count in counts.items()]
        return tuple(sorted(shares, key=lambda item: -item[1]))

    @cached_property
    def network_fraction(self) -> float:
        """Fraction of the opens in fetches that went to a network or FUSE file system."""
        return sum(share for kind, share in self.filesystems if over_network(kind))

    @cached_property
    def step_writes(self) -> tuple[FileUse, ...]:
        """Opens for writing in the consumer's steps, the most opened first."""
        self._need_files()
        return self._files("step", "w", "rw")

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """Files that fetching processes held open and whose opens were counted, the most opened
        first. A file opened once and kept has 0."""
        pids = {row.pid for row in self._facts.fetches}
        rows = [row for row in self._profile.held_files if row.opens >= 0 and pids & {*row.pids}]
        if not rows:
            raise NotMeasuredError("files held open", "the sampler caught none in fetches")
        found = [
            Held(row.path, row.opens, row.opens / self._samples_since(row), row.size_bytes)
            for row in rows
        ]
        return tuple(sorted(found, key=lambda item: -item.opens_per_sample))

    def _samples_since(self, held: HeldFile) -> float:
        """Samples fetched while the opens of a file were counted, at least 1; of the fetch that was
        under way then, a part."""
        total = 0.0
        for row in self._facts.fetches:
            if row.end_ns > held.since_ns and row.samples > 0:
                part = (row.end_ns - max(row.start_ns, held.since_ns)) / max(1, row.fetch_ns)
                total += row.samples * part
        return max(1.0, total)

    def _files(self, phase: str, *modes: str) -> tuple[FileUse, ...]:
        rows = self._profile.files
        return tuple(use for use in rows if use.phase == phase and use.mode in modes)

    def _need_files(self) -> None:
        for gap in self._profile.not_measured:
            if gap.what == _OBSERVER:
                raise NotMeasuredError("which files were opened", gap.reason)

    def _no_opens(self) -> str:
        return "Python opened none in fetches" if not self.opens else "none could be looked at"

    def _samples(self, pids: set[int]) -> int:
        """Samples that these processes fetched, at least 1."""
        rows = [row for row in self._profile.fetches if row.pid in pids]
        return max(1, sum(max(0, row.samples) for row in rows))

    # -- reads ------------------------------------------------------------------------------------

    @cached_property
    def fetching_processes(self) -> tuple[ProcessUse, ...]:
        """Counters of the processes that fetch: the workers, or the consumer's without workers."""
        pids = {row.pid for row in self._facts.fetches}
        rows = tuple(use for use in self._profile.processes if use.pid in pids)
        if not rows:
            raise NotMeasuredError("what processes read", self._why_no_counters())
        return rows

    @cached_property
    def consumer_process(self) -> ProcessUse:
        """Counters of the profiled process."""
        for use in self._profile.processes:
            if use.pid == self._profile.pid:
                return use
        raise NotMeasuredError("what the process read and wrote", self._why_no_counters())

    @cached_property
    def read_bytes_per_sample(self) -> float:
        """Bytes that read calls returned for one sample, page cache included. Reads through memory
        maps are not in it."""
        return self._per_sample("read_bytes")

    @cached_property
    def read_calls_per_sample(self) -> float:
        return self._per_sample("read_calls")

    @cached_property
    def device_bytes_per_sample(self) -> float:
        """Bytes that came from a device for one sample, memory maps included."""
        return self._per_sample("device_read_bytes")

    @cached_property
    def bytes_per_read_call(self) -> float:
        rows = self._readable("read_calls")
        calls = sum(use.read_calls for use in rows)
        if not calls:
            raise NotMeasuredError("bytes per read call", "no read call was made")
        return sum(use.read_bytes for use in rows) / calls

    @cached_property
    def used_bytes_per_sample(self) -> float:
        """Bytes of one sample as the loop receives it, in the collated batch."""
        rows = [row for row in self._facts.fetches if row.batch_bytes > 0 and row.samples > 0]
        if not rows:
            raise NotMeasuredError("bytes of a batch", "no batch could be measured")
        return sum(row.batch_bytes for row in rows) / sum(row.samples for row in rows)

    def _per_sample(self, name: str) -> float:
        rows = self._readable(name)
        total = sum(int(getattr(use, name)) for use in rows)
        part = self._part_in_loop(name) if self._facts.alone else 1.0
        return total * part / self._samples({use.pid for use in rows})

    def _readable(self, name: str) -> list[ProcessUse]:
        rows = [use for use in self.fetching_processes if getattr(use, name) >= 0]
        if not rows:
            raise NotMeasuredError("what processes read", "/proc/<pid>/io may not be read here")
        return rows

    def _part_in_loop(self, name: str) -> float:
        """The consumer's counters cover the whole profile; what the loop's part of them is, the
        series of the tree tells. 1, which is the most it can be, where its readings are too few."""
        wanted = "tree_read_bytes" if name == "device_read_bytes" else "tree_read_chars"
        series = self._profile.series.get(wanted)
        loop = self._facts.loop
        if series is None or series.total() <= 0 or loop.wall_ns < _LEAST_LOOP_NS:
            return 1.0
        inside = value_at(series, loop.end_ns) - value_at(series, loop.start_ns)
        return min(1.0, max(0.0, inside / series.total()))

    def _why_no_counters(self) -> str:
        if self._profile.tier == "in_process":
            return "the helper process did not run"
        return "the sampler saw no such process"

    # -- memory and descriptors -------------------------------------------------------------------

    @cached_property
    def private_growth_bytes(self) -> dict[int, int]:
        """Worker's process id -> growth of its private memory between first and last reading.

        Copy-on-write pages that a worker touches are in it, as is what it allocates.
        """
        grown = {
            use.pid: use.last_private_bytes - use.first_private_bytes
            for use in self._profile.processes
            if use.worker >= 0 and use.first_private_bytes >= 0
        }
        if not grown:
            raise NotMeasuredError("private memory of the workers", "no worker lived long enough")
        return grown

    @cached_property
    def open_files_fraction(self) -> float:
        """The most open descriptors of any process, over the limit it has."""
        rows = [use for use in self._profile.processes if use.open_files_limit > 0]
        if not rows:
            raise NotMeasuredError("open descriptors", self._why_no_counters())
        return max(use.peak_open_files / use.open_files_limit for use in rows)

    # -- the garbage collector --------------------------------------------------------------------

    @cached_property
    def gc_share(self) -> float:
        """Part of the loop's wall time in which the consumer's collector ran (pauses >= 1 ms)."""
        loop = self._facts.loop
        pauses = _spans(row for row in self._profile.gc_pauses if row.pid == self._profile.pid)
        return total_ns(clip(union(pauses), loop.start_ns, loop.end_ns)) / loop.wall_ns

    @cached_property
    def gc_fraction_of_fetches(self) -> float:
        """Part of the fetching time in which the collector of the same process ran."""
        spent = fetching = 0
        rows = self._facts.fetches
        for pid in {row.pid for row in rows}:
            spans = union([(row.start_ns, row.end_ns) for row in rows if row.pid == pid])
            pauses = union(_spans(row for row in self._profile.gc_pauses if row.pid == pid))
            fetching += total_ns(spans)
            spent += intersect_ns(spans, pauses)
        return spent / fetching if fetching else 0.0


def over_network(filesystem: str) -> bool:
    """Whether reads of a file system of this kind may cross a network."""
    return filesystem in NETWORK_FILESYSTEMS or filesystem.startswith("fuse.")


def value_at(series: Series, when_ns: int) -> float:
    """A series' value between its readings, on a straight line; the nearest outside of them."""
    times, values = series.time_ns, series.values
    if when_ns <= times[0]:
        return values[0]
    for before, (later_ns, value) in enumerate(zip(times[1:], values[1:], strict=True)):
        if when_ns <= later_ns:
            part = (when_ns - times[before]) / max(1, later_ns - times[before])
            return values[before] + part * (value - values[before])
    return values[-1]


def _spans(pauses: Iterable[GcPause]) -> list[Interval]:
    return [(row.start_ns, row.end_ns) for row in pauses]
