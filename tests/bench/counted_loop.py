"""One loop for `instructions.py`, to be run under Valgrind: `WORKLOAD ARM BATCHES`.

Prints the process ids of a child that ends where the loop begins, of the loop and of its workers,
and ends at once when the loop does. What the child has in its count is what all have from before.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.capture import batch_digest, recorder, sample_checksums
from jupyter_ioscope.capture.loaders import _torch_fetch, _torch_worker
from tests.bench.workloads import WORKLOADS

SLOWER = 40  # Valgrind against the machine itself, roughly


def main(workload: str, arm: str, batches: int) -> None:
    make: Callable[..., DataLoader[Any]] = WORKLOADS[workload]
    loader = make(batches)
    for _ in make(4):
        pass
    _as_short_as_they_are()
    profiled = ioscope.profile(stacks=False) if arm == "profiled" else contextlib.nullcontext()
    with profiled:
        before = os.fork()
        if not before:
            os._exit(0)
        os.waitpid(before, 0)
        iterator: Any = iter(loader)
        pids = [before, os.getpid(), *(worker.pid for worker in iterator._workers)]
        for _ in iterator:
            pass
        print(json.dumps(pids), flush=True)
        # Workers end in their own time: what they do then is small and the same in every run.
        del iterator
        os._exit(0)


def _as_short_as_they_are() -> None:
    """What is recorded depends on how long a fetch takes, and here all take too long."""
    for module, name in (
        (_torch_worker, "_SHORT_NS"),
        (recorder, "SHORT_NS"),
        (batch_digest, "_MAP_LEAST_FETCH_NS"),
        (sample_checksums, "LEAST_FETCH_NS"),
        (_torch_fetch, "LEAST_FETCH_NS"),
    ):
        setattr(module, name, SLOWER * getattr(module, name))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
