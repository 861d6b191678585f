"""A job: profile an arm's loader inside its process, with a stand-in for the user's step."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from jupyter_ioscope.capture.profiler import CaptureOptions, Profiler
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.model.files import save
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import Beats, Indices, seed_all, shut_down, worker_ids
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.step import Step
from jupyter_ioscope.trials.trial import prepared


def profiled(
    emit: Any,
    stop: Any,
    folder: str,
    spec: LoaderSpec,
    seed: int,
    least_s: float,
    batches: int,
    path: str,
    step: Step,
) -> dict[str, Any]:
    """Record the loader for `least_s` seconds and `batches` batches, epoch after epoch; the profile
    goes to `path`. No stacks: they cost more than they tell about how fast batches come."""
    if folder:  # removed by the parent, also when this process is killed in the middle
        tempfile.tempdir = folder
    spec, _ = prepared(spec, folder, False)
    seed_all(seed)
    indices, beats = Indices(spec), Beats(emit)
    profiler = Profiler(CaptureOptions(stacks=False))
    profiler.start()
    count = delivered = 0
    started = time.monotonic()
    iterator: Any = None

    def enough() -> bool:
        return (count >= batches and time.monotonic() - started >= least_s) or stop()

    try:
        with indices.noted():
            loader = build(spec)
            while not enough():
                indices.ids.clear()
                iterator, before = iter(loader), count
                beats(count, delivered, worker_ids(iterator))
                for number, batch in enumerate(iterator):
                    delivered += indices.samples(number, batch)
                    count += 1
                    beats(count, delivered)
                    step.run()
                    if enough():
                        break
                if count == before:
                    raise ValueError("the loader gave no batch at all in an epoch")
    finally:
        profile = profiler.stop()
        Sampler.shared().close()
    save(profile, path)
    shut_down(iterator, own_process=bool(folder))
    return {"batches": count, "samples": delivered}
