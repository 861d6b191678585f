"""Runs the jobs of one comparison, one after the other."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import Any, NamedTuple

from jupyter_ioscope.model.comparison import Trial
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.delivery import Delivered, Limit, deliver
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Watch
from jupyter_ioscope.trials.plan import Pilot, pilot_of
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.room import memory_limit_bytes
from jupyter_ioscope.trials.spec import LOOK_S, LoaderSpec
from jupyter_ioscope.trials.step import NO_STEP, Step
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.trial import Plan, timed

_STEP = (
    "Trials draw batches as fast as they come: a loop whose own step is longer than the loader "
    "needs per batch gains less than this ratio."
)


class Measured(NamedTuple):
    """What one run outside of a pair showed."""

    samples_per_s: float
    first_batch_s: float
    peak_bytes: int


class Runner:
    """Binds isolation, progress and cancellation together. `seed` is that of every job."""

    def __init__(
        self,
        isolation: Isolation,
        reporter: Reporter,
        cancel: threading.Event | None,
        silence_s: float,
    ) -> None:
        self.isolation, self.reporter = isolation, reporter
        self.seed = random.Random(os.urandom(8)).randrange(1, 2**31)
        self.watch = Watch(silence_s, cancel, reporter.tick, memory_limit_bytes())
        self._deliveries = 0
        self.reads_files = False  # whether a delivery so far used data files

    def said(self, step: Step) -> list[str]:
        """What to know about these runs, for the notes of the result."""
        return [_STEP if step == NO_STEP else step.text()]

    def learn(self, toggle: Toggle, spec: LoaderSpec, look_s: float = LOOK_S) -> dict[str, Any]:
        """The facts that a toggle asks for before it can be applied, from looks at samples of about
        `look_s` seconds."""
        assert toggle.learn is not None
        spec = spec.changed(look_s=look_s)
        job = Job("B", run_learn, (toggle.learn, spec, self.seed), needs_child=True)
        return self.isolation.run(job, self.watch)[0]

    def deliver(
        self, arm: str, spec: LoaderSpec, limit: Limit, reseed: int | None = None
    ) -> Delivered:
        self._deliveries += 1
        path = os.path.join(self.isolation.folder, f"delivered-{self._deliveries}")
        arguments = (spec, self.seed, limit, path, reseed)
        result, _ = self.isolation.run(
            Job(arm, deliver, arguments, needs_child=bool(spec.in_child)), self.watch
        )
        delivered = Delivered(**result)
        self.reads_files = self.reads_files or bool(delivered.files)
        return delivered

    def pilot(self, arm: str, spec: LoaderSpec, plan: Plan) -> tuple[Pilot, set[str]]:
        """What a short run shows, and the data files it used (none in the kernel)."""
        started = time.monotonic()
        result, _ = self._timed(arm, spec, plan, learn=True)
        pilot = pilot_of(result, time.monotonic() - started, spec, plan.discard)
        return pilot, set(result.get("files", ()))

    def untimed(self, arm: str, spec: LoaderSpec, plan: Plan) -> set[str]:
        """One pass as the timed ones will be; the data files it used (none in the kernel)."""
        return set(self._timed(arm, spec, plan, learn=True)[0].get("files", ()))

    def run_job(self, job: Job) -> dict[str, Any]:
        """The result of any other job."""
        return self.isolation.run(job, self.watch)[0]

    def measured(self, arm: str, spec: LoaderSpec, plan: Plan) -> Measured:
        """One run outside of a pair; of a loader that ends before it is steady, the whole of it."""
        started = time.monotonic()
        result, peak_bytes = self._timed(arm, spec, plan, learn=False)
        pilot = pilot_of(result, time.monotonic() - started, spec, plan.discard)
        return Measured(
            pilot.samples_per_s, result["first_batch_s"], max(peak_bytes, result["memory_bytes"])
        )

    def trial(self, arm: str, spec: LoaderSpec, plan: Plan, pair: int) -> Trial:
        result, peak_bytes = self._timed(arm, spec, plan, learn=False)
        samples, steady_s = result["samples"], result["steady_s"]
        if not samples or steady_s <= 0:
            raise TimeoutError(f"arm {arm} gave no steady stretch in {plan.max_s:.0f} s")
        return Trial(
            arm=arm,
            pair=pair,
            samples=samples,
            batches=result["batches"],
            discarded_batches=result["discarded"],
            steady_s=steady_s,
            samples_per_s=samples / steady_s,
            cpu_ms_per_sample=1000 * result["cpu_s"] / samples,
            first_batch_s=result["first_batch_s"],
            peak_memory_bytes=max(peak_bytes, result["memory_bytes"]),
            external_cpu=result["external_cpu"],
        )

    def _timed(
        self, arm: str, spec: LoaderSpec, plan: Plan, learn: bool
    ) -> tuple[dict[str, Any], int]:
        job = Job(arm, timed, (spec, plan, learn), needs_child=bool(spec.in_child))
        return self.isolation.run(job, self.watch)


def run_learn(
    emit: Any, stop: Any, folder: str, learn: Any, spec: LoaderSpec, seed: int
) -> dict[str, Any]:
    """A job: what a toggle wants to know."""
    from jupyter_ioscope.trials.counting import seed_all

    seed_all(seed)
    facts: dict[str, Any] = learn(spec.changed(folder=os.path.dirname(folder)))
    return facts
