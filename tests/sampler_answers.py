"""Asks the sampler for what it saw of this process, and reads its answer."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.request import SamplerRequest, SamplerResult
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.model.readings import STATES, ThreadReadings


def request_for(folder: Path, rate_hz: float = 50, take_stacks: bool = False) -> SamplerRequest:
    tid = threading.get_native_id()
    return SamplerRequest(os.getpid(), tid, str(folder), rate_hz, take_stacks, 50)


def stopped(sampler: Sampler, workers: dict[int, int] | None = None) -> SamplerResult:
    return sampler.stop(workers or {}, threading.get_native_id(), CellMap())


def states_of(thread: ThreadReadings) -> Counter[str]:
    return Counter(STATES[state] for state in thread.states)


def thread_of(result: SamplerResult, role: str, worker: int = -1) -> ThreadReadings:
    return next(t for t in result.threads if t.role == role and t.worker == worker)
