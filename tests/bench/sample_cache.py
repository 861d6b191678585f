"""The cache of samples: time and rate of hits, by one process and by several, and its real size."""

from __future__ import annotations

import multiprocessing
import os
import time
from statistics import median
from typing import Any

import torch

from jupyter_ioscope.trials.sample_cache import CachedDataset
from tests.bench.measure import print_result

SAMPLES, LIMIT_BYTES = 400, 96 << 20
PROCESSES, SECONDS, QUICK_SECONDS = 4, 6.0, 1.5


class Decoded:
    """Samples like decoded pictures of 3 x 112 x 112 in 32-bit numbers: 150 kB each."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        return torch.full((3, 112, 112), float(index)), index


class Tokens(Decoded):
    """Samples like a tokenised text: 2 kB each."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((256,), index)


def measure(quick: bool) -> dict[str, Any]:
    seconds = QUICK_SECONDS if quick else SECONDS
    result: dict[str, Any] = {}
    for name, dataset in (("picture", Decoded()), ("tokens", Tokens())):
        cached = CachedDataset(dataset, limit_bytes=LIMIT_BYTES)
        for index in range(SAMPLES):
            cached[index]
        rate, median_us, cpu_us = hits(cached, seconds)
        result[f"{name}_hits_per_s"], result[f"{name}_hit_us"] = rate, median_us
        result[f"{name}_hit_cpu_us"] = cpu_us
        result[f"{name}_hits_per_s_of_{PROCESSES}"] = together(cached, seconds)
        stats = cached.stats()
        assert stats.misses == SAMPLES, "a sample was evicted: the bench timed misses"
    return result | filled()


def hits(cached: CachedDataset, seconds: float) -> tuple[float, float, float]:
    """(hits a second, median microseconds of a hit, CPU microseconds of a hit)"""
    times: list[int] = []
    start, cpu = time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) - start < seconds:
        begun = time.perf_counter_ns()
        cached[(len(times) * 7919) % SAMPLES]
        times.append(time.perf_counter_ns() - begun)
    cpu_us = 1e6 * (time.process_time() - cpu) / len(times)
    return len(times) / (now - start), median(times) / 1e3, cpu_us


def together(cached: CachedDataset, seconds: float) -> float:
    """Hits a second of several processes that share the cache."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [
        context.Process(target=lambda: queue.put(hits(cached, seconds)[0]))
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    total = sum(queue.get() for _ in workers)
    for worker in workers:
        worker.join()
    return float(total)


def filled() -> dict[str, float]:
    """A cache for a third of what goes in: its size by its own account and by the system's."""
    limit = 16 << 20
    cached = CachedDataset(Decoded(), limit_bytes=limit)
    for index in range(SAMPLES):
        cached[index]
    stats = cached.stats()
    taken = os.fstat(cached._store._memory.fd).st_blocks * 512
    return {
        "limit_bytes": limit,
        "size_bytes": stats.size_bytes,
        "system_bytes": taken,
        "payload_bytes": stats.used_bytes,
        "evicted": stats.evicted,
    }


if __name__ == "__main__":
    print_result(measure, __doc__)
