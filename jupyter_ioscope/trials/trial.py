"""One timed run of an arm, inside the process it was given."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import Beats, Indices, seed_all, shut_down, worker_ids
from jupyter_ioscope.trials.page_cache import LearnFiles, mapped_files
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.tally import Plan, Tally

__all__ = ["Plan", "prepared", "timed"]


def timed(
    emit: Any, stop: Any, folder: str, spec: LoaderSpec, plan: Plan, learn: bool
) -> dict[str, Any]:
    """Run `plan` on a new loader of `spec`. `learn` also notes which files are opened (never in a
    timed trial: it costs a little at every open)."""
    spec, files = prepared(spec, folder, learn)
    seed_all(plan.seed)
    run = _Run(emit, stop, spec, plan)
    with run.indices.noted():
        result = run.epochs() if plan.mode == "epochs" else run.steady()
        if files is not None:
            result["files"] = sorted(files.found() | mapped_files(run.workers))
        run.close(own_process=bool(folder))
    return result


def prepared(spec: LoaderSpec, folder: str, learn: bool) -> tuple[LoaderSpec, LearnFiles | None]:
    """Make the in-child changes of `spec` here and have its workers make them too."""
    files = LearnFiles(f"{folder}/opened") if learn and folder else None
    if files is not None:
        spec = spec.changed(in_child=(*spec.in_child, files))
    for change in spec.in_child:
        change.install()
    return spec, files


class _Run:
    def __init__(self, emit: Any, stop: Any, spec: LoaderSpec, plan: Plan) -> None:
        self.plan, self.stop = plan, stop
        self.indices, self.beats = Indices(spec), Beats(emit)
        self.tally = Tally(plan, spec.num_workers)
        self.loader = build(spec)
        self.iterator: Any = None
        self.workers: list[int] = []

    def steady(self) -> dict[str, Any]:
        done, tally = False, self.tally
        while not done:
            samples = batches = 0
            for number, count in self._epoch():
                batches, samples = number + 1, samples + count
                if tally.steady(number, count):
                    done = True
                    break
            else:
                tally.epoch_ended(batches, samples)
            tally.meter.stop()
            # An epoch that ends before anything is steady will do so again.
            done = done or tally.meter.batches == 0
        return tally.result()

    def epochs(self) -> dict[str, Any]:
        tally, let_pass = self.tally, self.plan.let_pass
        for epoch in range(let_pass + self.plan.epochs):
            if epoch == let_pass:
                tally.meter.start()
            samples = batches = 0
            for number, count in self._epoch():
                batches, samples = number + 1, samples + count
                tally.counted(count)
            tally.epoch_ended(batches, samples)
        # An epoch is over when the loader says so, with its workers' end.
        tally.meter.stop(time.monotonic_ns())
        return tally.result()

    def _epoch(self) -> Iterator[tuple[int, int]]:
        """(number, samples) of each batch; the newest batch stays alive, as in a user's loop."""
        tally = self.tally
        self.indices.ids.clear()
        self.iterator = iter(self.loader)
        self.workers = worker_ids(self.iterator)
        self.beats(tally.delivered, tally.delivered_samples, self.workers)
        for number, batch in enumerate(self.iterator):
            tally.arrived()
            count = self.indices.samples(number, batch)
            tally.delivered_samples += count
            self.beats(tally.delivered, tally.delivered_samples)
            if self.stop():
                raise InterruptedError("stopped")
            yield number, count
            self.plan.step.run()

    def close(self, own_process: bool) -> None:
        iterator, self.iterator = self.iterator, None
        self.loader._iterator = None
        shut_down(iterator, own_process)
