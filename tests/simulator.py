"""A simulated loader: what its threads did, and the records a capture would hold of it.

The model is that of torch's loader (batch k of N workers, W = N x prefetch credits): a worker
starts fetch k when it has finished fetch k-N and the consumer has taken batch k-W.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.model.records import Batch, Epoch, Fetch, WorkerInfo

MS = 1_000_000
S = 1_000_000_000
PID = 4000
START_NS = 1_000 * S

# Part of a fetch -> state the sampler would see. "cpu" and "run_queue" both look runnable.
SEEN = {
    "cpu": "running",
    "run_queue": "running",
    "disk": "disk",
    "page_fault": "page_fault",
    "network": "network",
    "sleep": "sleep",
    "process": "pipe",
    "gil": "gil",
    "lock": "lock",
    "other": "blocked",
}


@dataclass
class Timeline:
    """What one thread did: adjacent segments of (start_ns, end_ns, part or state)."""

    segments: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, start_ns: int, end_ns: int, what: str) -> int:
        if end_ns > start_ns:
            self.segments.append((start_ns, end_ns, what))
        return max(start_ns, end_ns)

    def total(self, what: str, first_ns: int, last_ns: int) -> int:
        return sum(
            max(0, min(end, last_ns) - max(start, first_ns))
            for start, end, name in self.segments
            if name == what
        )

    def readings(
        self,
        *,
        pid: int,
        tid: int,
        name: str,
        role: str,
        worker: int,
        first_ns: int,
        last_ns: int,
        rate_hz: float,
        idle: str,
        rng: random.Random,
        major_faults: int = 0,
    ) -> ThreadReadings:
        """What the sampler would have read of this thread; between segments it was in `idle`."""
        starts = [segment[0] for segment in self.segments]
        beat_ns = int(S / rate_hz)
        times: list[int] = []
        states: list[int] = []
        now_ns = first_ns + rng.randrange(beat_ns)
        while now_ns < last_ns:
            at = bisect_right(starts, now_ns) - 1
            inside = at >= 0 and now_ns < self.segments[at][1]
            what = self.segments[at][2] if inside else idle
            times.append(now_ns)
            states.append(STATES.index(SEEN.get(what, what)))
            now_ns += beat_ns + rng.randrange(-beat_ns // 20, beat_ns // 20 + 1)
        return ThreadReadings(
            pid=pid,
            tid=tid,
            name=name,
            role=role,
            worker=worker,
            first_ns=first_ns,
            last_ns=last_ns,
            run_ns=self.total("cpu", first_ns, last_ns),
            run_queue_ns=self.total("run_queue", first_ns, last_ns),
            major_faults=major_faults,
            sample_ns=tuple(times),
            states=tuple(states),
        )


@dataclass
class World:
    """Settings and growing state of one simulated run."""

    workers: int
    batches: int
    epochs: int
    batch_size: int
    fetch_ms: float
    fetch_cv: float
    states: Mapping[str, float]
    step_ms: float
    main_ms: float
    delay_ms: float
    put_ms: float
    feeder_ms: float
    prefetch: int
    start_ms: float
    end_ms: float
    entry_ms: float
    collate_fraction: float
    persistent: bool
    tensors: int
    batch_bytes: int
    read_bytes: int
    rng: random.Random
    now_ns: int = START_NS
    consumer: Timeline = field(default_factory=Timeline)
    main: dict[int, Timeline] = field(default_factory=dict)  # pid -> worker's main thread
    feeders: dict[int, Timeline] = field(default_factory=dict)
    epoch_rows: list[Epoch] = field(default_factory=list)
    batch_rows: list[Batch] = field(default_factory=list)
    fetch_rows: list[Fetch] = field(default_factory=list)
    worker_rows: list[WorkerInfo] = field(default_factory=list)
    next_pid: int = PID + 1

    def fetch(self, timeline: Timeline, start_ns: int, worker: int, pid: int, task: int) -> Fetch:
        """One fetch, item by item, each item going through all parts in turn."""
        service_ms = self.fetch_ms * max(0.2, self.rng.gauss(1.0, self.fetch_cv))
        now_ns = start_ns
        cpu_ns = 0
        for _ in range(self.batch_size):
            for part, fraction in self.states.items():
                length_ns = int(service_ms * MS * fraction / self.batch_size)
                now_ns = timeline.add(now_ns, now_ns + length_ns, part)
                cpu_ns += length_ns if part == "cpu" else 0
        row = Fetch(
            worker=worker,
            pid=pid,
            loader=0,
            epoch=len(self.epoch_rows),
            task=task,
            start_ns=start_ns,
            end_ns=now_ns,
            collate_ns=int((now_ns - start_ns) * self.collate_fraction),
            cpu_ns=cpu_ns,
            samples=self.batch_size,
            major_faults=self.batch_size if self.states.get("page_fault") else 0,
            minor_faults=20,
            voluntary_switches=self.batch_size * sum(1 for part in self.states if part != "cpu"),
            involuntary_switches=1,
            read_blocks=self.read_bytes // 512,
            tensors=self.tensors,
            batch_bytes=self.batch_bytes,
        )
        self.fetch_rows.append(row)
        return row

    def epoch(self, number: int) -> None:
        start_ns = self.now_ns
        new = self.workers > 0 and (number == 0 or not self.persistent)
        iter_end_ns = self.consumer.add(
            start_ns, start_ns + int((self.start_ms if new else 0.05) * MS), "cpu"
        )
        if self.workers:
            if new:
                self._hire(number, start_ns, iter_end_ns)
            end_ns = self._with_workers(number, iter_end_ns)
        else:
            end_ns = self._alone(iter_end_ns)
        stop_ms = self.end_ms if self.workers and not self.persistent else 0.05
        end_ns += int(stop_ms * MS)
        if new and not self.persistent:
            self.worker_rows = [
                row._replace(left_ns=end_ns) if row.left_ns < 0 else row for row in self.worker_rows
            ]
        self.epoch_rows.append(Epoch(number, 0, start_ns, iter_end_ns, end_ns))
        self.now_ns = end_ns + MS

    def _hire(self, epoch: int, created_ns: int, ready_ns: int) -> None:
        for worker in range(self.workers):
            pid, self.next_pid = self.next_pid, self.next_pid + 1
            self.main[pid] = Timeline()
            self.feeders[pid] = Timeline()
            entered_ns = ready_ns + int(self.entry_ms * MS / 2)
            self.worker_rows.append(
                WorkerInfo(worker, 0, epoch, pid, pid, created_ns, entered_ns, -1, 0)
            )

    def _with_workers(self, epoch: int, iter_end_ns: int) -> int:
        pids = [row.pid for row in self.worker_rows][-self.workers :]
        free_ns = [iter_end_ns + int(self.entry_ms * MS)] * self.workers
        credits = self.workers * self.prefetch
        received: list[int] = []
        now_ns = iter_end_ns
        for k in range(self.batches):
            worker, task = k % self.workers, k
            asked_ns = received[k - credits] if k >= credits else iter_end_ns
            pid = pids[worker]
            row = self.fetch(self.main[pid], max(free_ns[worker], asked_ns), worker, pid, task)
            put_ns = self.main[pid].add(row.end_ns, row.end_ns + int(self.put_ms * MS), "cpu")
            free_ns[worker] = put_ns
            self.feeders[pid].add(put_ns, put_ns + int(self.feeder_ms * MS), "cpu")
            ready_ns = row.end_ns + int((self.delay_ms + self.put_ms) * MS)
            self.consumer.add(now_ns, ready_ns, "poll")
            received.append(self._deliver(epoch, now_ns, max(now_ns, ready_ns), worker, task))
            now_ns = self.batch_rows[-1].step_end_ns
        return now_ns

    def _alone(self, iter_end_ns: int) -> int:
        now_ns = iter_end_ns
        for k in range(self.batches):
            row = self.fetch(self.consumer, now_ns, -1, PID, k)
            self._deliver(len(self.epoch_rows), now_ns, row.end_ns, -1, k, row.cpu_ns)
            now_ns = self.batch_rows[-1].step_end_ns
        return now_ns

    def _deliver(
        self, epoch: int, called_ns: int, ready_ns: int, worker: int, task: int, cpu_ns: int = 0
    ) -> int:
        """The consumer takes a batch that is ready at `ready_ns`, then works with it."""
        main_ns, step_ns = int(self.main_ms * MS), int(self.step_ms * MS)
        got_ns = self.consumer.add(ready_ns, ready_ns + main_ns, "cpu")
        done_ns = self.consumer.add(got_ns, got_ns + step_ns, "cpu")
        self.batch_rows.append(
            Batch(
                batch=len(self.batch_rows),
                epoch=epoch,
                loader=0,
                wait_start_ns=called_ns,
                wait_end_ns=got_ns,
                step_end_ns=done_ns,
                wait_cpu_ns=cpu_ns + main_ns,
                step_cpu_ns=step_ns,
                samples=self.batch_size,
                worker=worker,
                task=task,
            )
        )
        return got_ns
