"""The throughput that each resource alone would allow."""

from __future__ import annotations

import logging
from collections.abc import Callable

from jupyter_ioscope.diagnosis import ceilings_loop, ceilings_storage, ceilings_workers
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Ceiling

log = logging.getLogger("ioscope")

_MAKERS: tuple[Callable[[Facts], Ceiling | None], ...] = (
    ceilings_loop.consumer,
    ceilings_loop.process,
    ceilings_loop.hand_over,
    ceilings_loop.feeder,
    ceilings_loop.start_up,
    ceilings_workers.worker_pool,
    ceilings_workers.order,
    ceilings_workers.cpu,
    ceilings_workers.cpu_left,
    ceilings_workers.gil,
    ceilings_storage.storage,
    ceilings_storage.storage_bandwidth,
    ceilings_storage.network,
)


def ceilings_of(facts: Facts) -> tuple[Ceiling, ...]:
    """Ceilings that this profile can tell, lowest first. One that was not measured is left out."""
    found: list[Ceiling] = []
    for make in _MAKERS if facts.batches else ():
        try:
            ceiling = make(facts)
        except NotMeasuredError:
            continue
        except Exception:  # one broken ceiling never hides the others
            log.warning("a ceiling failed", exc_info=True)
            continue
        if ceiling is not None:
            found.append(ceiling)
    return tuple(sorted(found, key=lambda row: row.samples_per_s))
