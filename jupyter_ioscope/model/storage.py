"""What was measured and judged about the place where data lives, and about this process's limits.

All `*_s` are seconds, all sizes bytes, all `*_fraction` 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# From good to bad; "unknown" where nothing could be measured.
VERDICTS = ("healthy", "degraded", "dangerous", "unknown")

# What answered a read:
#   device       past the page cache (O_DIRECT), or after an eviction that the kernel confirmed
#   page_cache   the kernel's memory: says nothing about the device
#   memory       the file system itself lives in memory
#   unproven     neither could be shown
ANSWERED_BY = ("device", "page_cache", "memory", "unproven")


class Promise(NamedTuple):
    """One property that programs rely on. `holds` is "yes", "no" or "depends"."""

    what: str
    holds: str
    why: str


class HarmfulOption(NamedTuple):
    """A mount option that makes a loader slower, what it does, and what to use instead."""

    option: str
    effect: str
    advice: str


class NfsOperation(NamedTuple):
    """One NFS operation of one mount, as the kernel's client counted it since the mount.

    Times are means for one operation: `queue_s` in the client, `rtt_s` from the request to the
    answer, `total_s` both. `repeats` are requests sent again, `errors` is -1 on kernels before 5.3.
    """

    name: str
    operations: int
    repeats: int
    timeouts: int
    sent_bytes: int
    received_bytes: int
    queue_s: float
    rtt_s: float
    total_s: float
    errors: int


@dataclass(frozen=True)
class NfsMount:
    """Counters of one NFS mount. `age_s` is the time since it was mounted."""

    mount_point: str
    source: str
    version: str
    age_s: int
    connections: int
    read_bytes: int  # that programs asked for through read()
    server_read_bytes: int  # that came from the server
    operations: tuple[NfsOperation, ...]


class CephOperation(NamedTuple):
    """One kind of request of the kernel's CephFS client since the mount. Times are for one request;
    -1 where the kernel does not keep them."""

    name: str  # "read", "write", "metadata", "copyfrom"
    operations: int
    mean_s: float
    worst_s: float
    deviation_s: float


@dataclass(frozen=True)
class FileSystem:
    """Where a path lies. `kind` is the kernel's name ("ext4", "fuse.sshfs"), `name` ours in words.

    `family` is one of "local", "overlay", "memory", "fuse", "network", "host", "object store".
    `capture_filter` is for those who may capture packets (tcpdump's syntax), "" where none fits.
    """

    path: str
    mount_point: str
    kind: str
    name: str
    family: str
    source: str
    read_only: bool
    options: tuple[str, ...]
    promises: tuple[Promise, ...]
    harmful: tuple[HarmfulOption, ...] = ()
    capture_filter: str = ""
    nfs: NfsMount | None = None
    ceph: tuple[CephOperation, ...] = ()
    no_counters: str = ""  # why a network file system that keeps some shows none


class Timing(NamedTuple):
    """Requests of one kind, one after the other. Latencies are those of one request; what it stood
    in line for a core is `queued_s`, of all requests together, and not in them.

    `bytes_per_s` counts bytes over the whole stretch, a final fsync included; 0 for requests that
    move none. `request_bytes` is the size of one, 0 for opens and the like.
    """

    name: str
    requests: int
    request_bytes: int
    seconds: float
    bytes_per_s: float
    p50_s: float
    p99_s: float
    worst_s: float
    answered_by: str = "unproven"
    how: str = ""  # how it is known
    queued_s: float = 0.0
    # (low, high) between which the number lies as far as so few requests can tell.
    p50_range_s: tuple[float, float] = (-1.0, -1.0)
    p99_range_s: tuple[float, float] = (-1.0, -1.0)
    bytes_per_s_range: tuple[float, float] = (-1.0, -1.0)


class Judged(NamedTuple):
    """One number against its thresholds. `source` says where the thresholds come from; the verdict
    is "unknown" for a number that is bad, but could as well be a good one, `doubt` says how.
    """

    what: str
    value: str
    verdict: str
    thresholds: str
    source: str
    doubt: str = ""


@dataclass(frozen=True)
class StorageCheck:
    """The health of one place. `written_bytes` is all that the check wrote (and removed again).

    `pressure_before` is the share of a quiet moment in which some program waited for I/O, and
    `iowait_before` that of idle cores with I/O under way; `pressure_during` includes this check's
    own requests. All three are -1 where the system does not say.
    """

    path: str
    kind: str  # "folder", "file", "address"
    quick: bool
    file_system: FileSystem
    verdict: str
    reasons: tuple[str, ...]
    judged: tuple[Judged, ...]
    timings: tuple[Timing, ...]
    for_loader: tuple[str, ...]
    notes: tuple[str, ...]
    written_bytes: int = 0
    free_bytes: int = -1
    work_folder: str = ""  # the private folder that was made and removed
    resident_fraction: float = -1.0  # of the file, after it was evicted; -1 where not asked
    iowait_before: float = -1.0
    pressure_before: float = -1.0
    pressure_during: float = -1.0
    seconds: float = 0.0
    nfs_during: NfsMount | None = None  # what the NFS client did meanwhile, this check included

    def timing(self, name: str) -> Timing | None:
        """The timing of that name; None where it was not measured."""
        return next((row for row in self.timings if row.name == name), None)


class Limit(NamedTuple):
    """One limit of this process. `value` is -1 for "no limit" and for what is unknown.

    `state` is "ok", "tight" (it can hold a loader back) or "hit" (it already did).
    """

    name: str
    value: float
    text: str
    source: str
    state: str
    effect: str


class Snippet(NamedTuple):
    """Configuration to copy. `place` is "Docker", "Kubernetes", "Slurm" or "shell"."""

    place: str
    code: str


@dataclass(frozen=True)
class Limits:
    """What container, control groups and ulimits do to a loader. `cores` is what may be used."""

    place: str
    evidence: tuple[str, ...]
    cores: float
    workers: int
    limits: tuple[Limit, ...]
    advice: tuple[str, ...]
    snippets: tuple[Snippet, ...]
    not_known: tuple[str, ...] = ()


class JobResult(NamedTuple):
    """One job of a baseline: the median of its repeats, with the smallest and the largest.

    `pattern` is "randread", "randwrite", "seqread" or "seqwrite"; bandwidths are bytes per second,
    latencies seconds. Of a row from a trace of the device (`engine` says so) only latencies are
    known; the others are 0.
    """

    engine: str
    pattern: str
    block_bytes: int
    depth: int
    repeats: int
    bytes_per_s: float
    bytes_per_s_low: float
    bytes_per_s_high: float
    requests_per_s: float
    p50_s: float
    p99_s: float
    p99_low_s: float
    p99_high_s: float

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What has to be the same for two jobs to be compared."""
        return self.engine, self.pattern, self.block_bytes, self.depth


class Circumstance(NamedTuple):
    """A fact about a baseline. Two are compared only if all that `binds` is the same."""

    name: str
    value: str
    binds: bool


@dataclass(frozen=True)
class Baseline:
    """A storage baseline as it is saved. `tool` is "fio 3.33" or "ioscope's own engine"."""

    path: str
    created_utc: str
    tool: str
    direct: bool
    circumstances: tuple[Circumstance, ...]
    jobs: tuple[JobResult, ...]
    not_measured: tuple[str, ...] = ()


class JobChange(NamedTuple):
    """One job against the saved baseline. `change` is of the bandwidth, +0.1 for 10 % more.

    `told_apart` says that both ran several times and their repeats do not overlap. `verdict` is
    "same", "faster", "warning" or "degraded".
    """

    job: JobResult
    before: JobResult
    change: float
    told_apart: bool
    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class BaselineCheck:
    """A new measurement against a saved baseline. `verdict` is the worst of its rows."""

    path: str
    file: str
    verdict: str
    rows: tuple[JobChange, ...]
    before: Baseline
    now: Baseline
    thresholds: str
    notes: tuple[str, ...] = ()
