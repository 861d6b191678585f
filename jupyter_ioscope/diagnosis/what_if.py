"""What another setting of the loader would bring, from one profile."""

from __future__ import annotations

import contextlib
import math
from functools import cached_property
from statistics import median

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.loader_model import SHORT_TRANSIT_NS, Piece, samples_per_s
from jupyter_ioscope.diagnosis.recorded import arrived_in_wait
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.prediction import Predicted, Prediction, Setting
from jupyter_ioscope.model.records import DEFAULT_PREFETCH, Batch, Fetch

Z90 = 1.645  # half-width of a 90 % interval in standard errors (normal)
MOST_PIECES = 600  # a model run takes milliseconds, and a search makes some hundred

_ENOUGH_READY = 5

# What a loop without workers does not show: the way of a batch. One tiny tensor cost 0.93 ms of
# main-process CPU, 113 of them 45 ms; a large one is copied at some GB a second on either side.
BATCH_NS, OBJECT_NS, MOST_OBJECTS = 500_000.0, 400_000.0, 16
COPIED_BYTES_PER_NS = 2.0

# Standard errors of ln(predicted / measured) beside those of the profile itself. The first one is
# chosen so that nine in ten of the 96 pairs in notebooks/measurements.md lie inside (with 0.05 it
# were 78 %): those pairs are no independent test of it.
MODEL_ERROR = 0.10
DOUBLING_ERROR = 0.04  # for every factor of two in the number of workers
NEW_WORKERS_ERROR = 0.15  # the hand-over was never seen
# Of ln(modelled / measured) of what was recorded: half of it may be another one elsewhere.
MISFIT_PART = 0.5
# Where torch makes shared memory in a worker (`torch.utils.data._utils.collate`), and the most of a
# fetch that is believed to go with it: what else there is was then hardly seen.
_MAKES_SHARED = "/torch/storage.py", ("_new_shared",)
MOST_SHARING = 0.9
NO_STATES_ERROR = 0.10  # waiting for a core cannot be told from other waits


class WhatIf:
    """Predicts settings of the main loader of a profile.

    Raises NotMeasuredError when there is no record of fetches, or no steady throughput.
    """

    def __init__(self, facts: Facts, quiet: bool = False) -> None:
        """`quiet` leaves out what other programs took: for advice that shall hold without them."""
        self.facts, self._quiet = facts, quiet
        found = throughput_of(facts)
        if found is None or found.samples_per_s <= 0:
            raise NotMeasuredError("predictions", "no steady throughput was measured")
        self.measured = found
        self.pieces = self._pieces()
        if not self.pieces:
            raise NotMeasuredError("predictions", "no fetch was recorded")
        self._known: dict[Setting, float] = {}

    @property
    def current(self) -> Setting:
        """The loader as it was recorded."""
        info = self.facts.loader
        workers = 0 if self.facts.alone else info.num_workers
        return Setting(workers, info.prefetch if workers else DEFAULT_PREFETCH, info.in_order)

    def cores(self, setting: Setting) -> float:
        """Cores that the loop gets under a setting, beside other programs as busy as they were.

        What they leave, or a fair share if that is more: the kernel divides cores among those who
        want them, so more workers take more from the others.
        """
        all_cores = self.facts.cores
        if self._quiet:
            return all_cores / max(1, self.facts.profile.machine.ranks)
        try:
            taken = self.facts.taken_cores
        except NotMeasuredError:
            return all_cores
        own = setting.workers + 1
        return max(all_cores - taken, all_cores * own / (own + taken))

    def predict(self, setting: Setting) -> Predicted:
        """Steady samples per second under `setting`, on this machine as busy as it was."""
        value = self.measured.samples_per_s * self.ratio(setting)
        spread = math.exp(Z90 * self._error(setting))
        return Predicted(setting, value, value / spread, value * spread)

    def ratio(self, setting: Setting) -> float:
        """Modelled rate of `setting` over that of the loader as it was recorded."""
        before = self._rate(self.current)
        if self.current.workers and not setting.workers and not self._quiet:
            # What the model gets wrong about the hand-over goes with it, and does not cancel out.
            before = self.measured.samples_per_s
        return self._rate(setting) / before if before > 0 else 1.0

    def prediction(self, setting: Setting) -> Prediction:
        """`predict` as a ratio to what was measured."""
        ratio, spread = self.ratio(setting), math.exp(Z90 * self._error(setting))
        how = (
            f"Replayed {len(self.pieces)} recorded batches with {setting.workers} workers and "
            f"{setting.prefetch} batches ahead for each, on {self.cores(setting):.1f} cores."
            if setting.workers
            else f"Replayed {len(self.pieces)} recorded batches without workers."
        )
        return Prediction(ratio, ratio / spread, ratio * spread, how)

    def with_work(self, workers: int, shards: int = 0) -> int:
        """How many of so many workers have anything to do: each shard of a stream is read by one.
        `shards` is what the dataset itself says of them, 0 where it does not. Workers that were
        seen to deliver have a shard, whatever it says."""
        info, idle = self.facts.loader, self.facts.workers_without_work
        stream = info.dataset_kind == "iterable"
        if stream and not shards:
            shards = max(0, HfFacts(self.facts).number("shards"))
        if not shards and not (stream and idle):
            return workers
        busy = 0 if self.facts.alone else info.num_workers - idle
        return min(workers, max(shards, busy))

    def _rate(self, setting: Setting) -> float:
        setting = setting._replace(workers=self.with_work(setting.workers))
        if setting not in self._known:
            pieces = self.pieces if setting.workers else self._pieces_alone
            self._known[setting] = samples_per_s(pieces, setting, self.cores(setting))
        return self._known[setting]

    def _error(self, setting: Setting) -> float:
        """Standard error of the logarithm of the predicted ratio."""
        now = self.current
        if setting == now:
            return 0.0
        workers = math.log2(max(1, setting.workers) / max(1, now.workers))
        errors = [MODEL_ERROR, DOUBLING_ERROR * abs(workers)]
        if bool(setting.workers) != bool(now.workers):
            errors.append(NEW_WORKERS_ERROR if setting.workers else MODEL_ERROR)
        if not setting.workers:
            errors.append(self._for_sharing[1])
        if not self._sampled:
            errors.append(NO_STATES_ERROR)
        errors.append(self.measured.error / self.measured.samples_per_s)
        errors.append(MISFIT_PART * abs(self._misfit))
        return min(1.0, together(*errors))

    @cached_property
    def _misfit(self) -> float:
        """ln of the modelled over the measured rate of the loader as it was recorded. On a crowded
        machine a batch waits at every hand-over for a core, which no model of its own costs
        repeats."""
        modelled = 0.0 if self._quiet else self._rate(self.current)
        return math.log(modelled / self.measured.samples_per_s) if modelled > 0 else 0.0

    @cached_property
    def _sampled(self) -> bool:
        try:
            self.facts.need_states()
        except NotMeasuredError:
            return False
        return True

    @cached_property
    def _pieces_alone(self) -> list[Piece]:
        """The batches as a loop without workers would make them."""
        kept = 1 - self._for_sharing[0]
        return [row._replace(cpu=kept * row.cpu, off_cpu=kept * row.off_cpu) for row in self.pieces]

    @cached_property
    def _for_sharing(self) -> tuple[float, float]:
        """(part of a worker's fetch that makes shared memory for what torch joins, error of the
        logarithm of what is left). Of tiny batches it is most of the fetch. Without stacks it is
        somewhere between nothing and all of the joining."""
        if self.facts.alone or self.facts.loader.library != "torch":
            return 0.0, 0.0
        with contextlib.suppress(NotMeasuredError):
            part, error = self.facts.work.under(*_MAKES_SHARED)
            part = min(MOST_SHARING, part)
            return part, error / (1 - part)
        rows = [row for row in self.facts.profile.fetches if row.worker >= 0]
        whole_ns = sum(row.fetch_ns for row in rows)
        joining = sum(row.collate_ns for row in rows) / whole_ns if whole_ns else 0.0
        return 0.0, -math.log(1 - min(MOST_SHARING, joining)) / 2

    @cached_property
    def _queue_fraction(self) -> float:
        """Of the fetches' time off the CPU, the part that went into waiting for a core: it comes
        and goes with the number of workers, so the model adds it itself."""
        if not self._sampled:
            return 0.0
        off_ns = sum(max(0, row.fetch_ns - row.cpu_ns) for row in self.facts.profile.fetches)
        return min(1.0, self.facts.part_ns("run_queue") / off_ns) if off_ns else 0.0

    def _pieces(self) -> list[Piece]:
        facts = self.facts
        known = [row for row in facts.batches if row.batch in facts.made][-MOST_PIECES:]
        if not known:
            return []
        if facts.alone:
            return [self._alone(row, facts.made[row.batch]) for row in known]
        main = self._taking_over(known)
        delays = [
            float(row.wait_end_ns - facts.made[row.batch].end_ns - main)
            for row in known
            if arrived_in_wait(row, facts.made[row.batch])
        ]
        transit = max(0.0, median(delays)) if delays else 0.0
        fetches = max(1, sum(1 for row in facts.profile.fetches if row.worker >= 0))
        put = facts.part_ns("hand_over") / fetches
        feeders = [row for row in facts.profile.threads if row.role == "feeder"]
        feeder = sum(row.run_ns for row in feeders) / fetches
        return [
            self._handed(row, facts.made[row.batch], put, feeder, main, transit) for row in known
        ]

    def _taking_over(self, known: list[Batch]) -> float:
        """What the main process needs for a batch that is there, in ns: the whole wait for it,
        which holds more than CPU (each tensor's descriptor is asked for and waited for). Where
        none lay ready, the CPU of the waits."""
        made = self.facts.made
        ready = [float(r.wait_ns) for r in known if not arrived_in_wait(r, made[r.batch])]
        if len(ready) >= _ENOUGH_READY:
            return median(ready)
        return median(float(row.wait_cpu_ns) for row in known)

    def _handed(
        self, row: Batch, fetch: Fetch, put: float, feeder: float, main: float, transit: float
    ) -> Piece:
        cpu, off = self._fetch(fetch)
        step_cpu = float(min(row.step_cpu_ns, row.step_ns))
        # A feeder that takes longer than the transit shows is counted there.
        return Piece(
            samples=self._samples(row),
            cpu=cpu,
            off_cpu=off,
            put=put,
            feeder=feeder,
            step_cpu=step_cpu,
            step_off=row.step_ns - step_cpu,
            main=main,
            transit=max(0.0, transit - put),
        )

    def _alone(self, row: Batch, fetch: Fetch) -> Piece:
        cpu, off = self._fetch(fetch)
        step_cpu = float(min(row.step_cpu_ns, row.step_ns))
        objects = min(max(1, fetch.tensors), MOST_OBJECTS)
        copy = fetch.batch_bytes / COPIED_BYTES_PER_NS
        return Piece(
            samples=self._samples(row),
            cpu=cpu,
            off_cpu=off,
            put=copy,
            feeder=objects * OBJECT_NS / 2,
            step_cpu=step_cpu,
            step_off=row.step_ns - step_cpu,
            main=BATCH_NS + objects * OBJECT_NS,
            transit=SHORT_TRANSIT_NS + copy,
        )

    def _fetch(self, fetch: Fetch) -> tuple[float, float]:
        cpu = float(min(fetch.cpu_ns, fetch.fetch_ns))
        return cpu, (fetch.fetch_ns - cpu) * (1 - self._queue_fraction)

    def _samples(self, row: Batch) -> float:
        return float(row.samples) if row.samples > 0 else self.facts.samples_per_batch
