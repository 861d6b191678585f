"""What the consumer and the workers recorded: loaders, epochs, batches, fetches.

All `*_ns` times are CLOCK_MONOTONIC nanoseconds, comparable between processes of one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_PREFETCH = 2  # torch's own default when num_workers > 0


@dataclass(frozen=True)
class LoaderInfo:
    """One loader that was iterated, as the user configured it.

    `loader` is its number within the profile. `samples_total` is None for streams.
    `workers_before_profile` says that its workers were already running, so that they could
    carry no records.
    """

    loader: int
    library: str  # "torch", "datasets"
    class_name: str
    dataset_class: str
    dataset_kind: str  # "map", "iterable"
    num_workers: int
    batch_size: int | None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    in_order: bool = True
    start_method: str | None = None
    samples_total: int | None = None
    workers_before_profile: bool = False
    facts: tuple[tuple[str, str], ...] = ()  # what its dataset library tells: (key, value)

    @property
    def prefetch(self) -> int:
        """Batches that each worker works ahead: torch's default where nothing else was asked."""
        return self.prefetch_factor or DEFAULT_PREFETCH

    def fact(self, key: str) -> str:
        """The value of a fact; "" where the dataset's library does not tell it."""
        return next((value for name, value in self.facts if name == key), "")


class Epoch(NamedTuple):
    """One call of `iter(loader)` and what followed. `end_ns` is None if it was left early."""

    epoch: int
    loader: int
    iter_start_ns: int
    iter_end_ns: int
    end_ns: int | None


class Batch(NamedTuple):
    """One batch as the consumer saw it.

    The consumer was blocked in `next()` from `wait_start_ns` to `wait_end_ns`; then it had the
    batch until `step_end_ns` (the next call of `next()`, or the end of the profile).
    `task` is its index in the epoch as torch counts them, `worker` who fetched it (-1: unknown).

    CPU times are exact, but for batches shorter than half a millisecond, of which one in eight is
    read in full: theirs are exact together and estimated for each.
    """

    batch: int
    epoch: int
    loader: int
    wait_start_ns: int
    wait_end_ns: int
    step_end_ns: int
    wait_cpu_ns: int
    step_cpu_ns: int
    samples: int  # -1 where unknown
    worker: int
    task: int

    @property
    def wait_ns(self) -> int:
        return self.wait_end_ns - self.wait_start_ns

    @property
    def step_ns(self) -> int:
        return self.step_end_ns - self.wait_end_ns


class Fetch(NamedTuple):
    """One fetch: getting the items of a batch and joining them, in a worker or in the consumer.

    `worker` is -1 when the consumer fetched for itself (`num_workers=0`). The collate is the
    last `collate_ns` of the fetch; `cpu_ns` is the thread's CPU time in it.
    """

    worker: int
    pid: int
    loader: int
    epoch: int
    task: int
    start_ns: int
    end_ns: int
    collate_ns: int
    cpu_ns: int
    samples: int
    major_faults: int
    minor_faults: int
    voluntary_switches: int
    involuntary_switches: int
    read_blocks: int  # ru_inblock, 512-byte blocks read from a device
    tensors: int  # objects in the collated batch that travel on their own
    batch_bytes: int
    digest: int = 0  # checksum of the batch's first values; 0 where none was made
    double_bytes: int = 0  # of the batch, in numbers of 64-bit floating point

    @property
    def fetch_ns(self) -> int:
        return self.end_ns - self.start_ns


class WorkerInfo(NamedTuple):
    """One worker process: when its start was asked for, when its loop began, when it ended."""

    worker: int
    loader: int
    epoch: int
    pid: int
    tid: int
    created_ns: int  # -1 where unknown
    entered_ns: int  # -1 where it could not be recorded
    left_ns: int  # -1 while it was still running, or killed
    records_lost: int
