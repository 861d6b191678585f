"""From one pilot of each arm: how long a timed stretch is, so that enough pairs fit the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.trial import Plan

_PAIRS = 8  # pairs the budget should hold; decisions often come sooner
_STRETCH_S = 1.5  # of the slower arm; shorter ones are noisier, longer ones leave fewer pairs
_SHORTEST_S = 0.15
_BATCHES = 20
_PILOT_S = 1.0
_ENOUGH_READ = 0.6  # of the stretch: a shorter one costs less than another pass before the pairs
_MOST_ROUNDS = 64  # batches; 7 against 8 workers have a common round of 56


@dataclass(frozen=True)
class Pilot:
    """What the pilot of one arm showed."""

    samples_per_s: float
    batch_samples: float
    overhead_s: float  # of a trial, beyond its timed stretch
    epoch_s: float  # of a whole epoch; inf when its end is not known
    steady_batches: float  # of an epoch, after the discarded ones; inf when not known
    timed_samples: int = 0  # read by the pilot after the discarded ones
    whole_epoch: bool = False  # the pilot came to the end of one


def pilot_plan(
    spec_a: LoaderSpec, spec_b: LoaderSpec, seed: int, budget_s: float, reads_files: bool = False
) -> Plan:
    """A short steady stretch; both arms discard alike so that they time the same samples. Of
    loaders that read files one as long as the trials will be: it is their untimed pass as well."""
    seconds = min(_PILOT_S, budget_s / 30)
    if reads_files:
        seconds = min(_STRETCH_S, budget_s / (2 * (_PAIRS + 1)))
    return Plan(
        mode="steady",
        seed=seed,
        discard=max(spec_a.discard, spec_b.discard),
        seconds=seconds,
        batches=4,
        max_s=max(2.0, budget_s / 6),
    )


def pilot_of(result: dict[str, Any], wall_s: float, spec: LoaderSpec, discard: int) -> Pilot:
    """Rates and sizes from a pilot's result; `wall_s` is how long the whole job took."""
    total_s = max(1e-6, result["total_s"])
    steady = result["batches"] > 0 and result["steady_s"] > 0
    rate = (
        result["samples"] / result["steady_s"]
        if steady
        else (result["delivered_samples"] / total_s)
    )
    epoch_samples = result["epoch_samples"][0] if result["epoch_samples"] else _samples(spec)
    epoch_batches = result["epoch_batches"][0] if result["epoch_batches"] else _batches(spec)
    overhead = max(0.05, wall_s - result["steady_s"])
    epoch_s = epoch_samples / max(rate, 1e-9) + (0.05 * spec.num_workers)
    if not steady and result["epoch_batches"]:
        epoch_s = total_s
    return Pilot(
        samples_per_s=max(rate, 1e-9),
        batch_samples=result["delivered_samples"] / max(1, result["delivered"]),
        overhead_s=overhead,
        epoch_s=epoch_s,
        steady_batches=epoch_batches - discard,
        timed_samples=result["samples"],
        whole_epoch=bool(result["epoch_batches"]),
    )


def is_short(pilot: Pilot, spec: LoaderSpec) -> bool:
    """Whether an epoch is over before anything is steady."""
    return pilot.steady_batches < max(4, 2 * spec.num_workers)


def steady_plan(
    first: Plan, pilots: tuple[Pilot, Pilot], specs: tuple[LoaderSpec, LoaderSpec], left_s: float
) -> Plan:
    """The stretch, in samples, that both arms deliver in each trial."""
    per_sample_s = sum(1 / pilot.samples_per_s for pilot in pilots)
    slower = min(pilot.samples_per_s for pilot in pilots)
    largest = max(pilot.batch_samples for pilot in pilots)
    room_s = left_s / (_PAIRS + 1) - sum(pilot.overhead_s for pilot in pilots)
    wanted = max(_STRETCH_S * slower, _BATCHES * largest)
    affordable = max(room_s / per_sample_s, _SHORTEST_S * slower)
    unit = rounds_of(specs, largest)
    samples = math.ceil(unit * max(1, math.ceil(min(wanted, affordable) / unit)))
    expected_s = samples / slower + max(pilot.overhead_s for pilot in pilots)
    return first._replace(samples=samples, max_s=4 * expected_s + 5)


def rounds_of(specs: tuple[LoaderSpec, LoaderSpec], batch_samples: float) -> float:
    """Samples in whole rounds of the workers of both arms: so both time exactly the same."""
    workers = [max(1, spec.num_workers) for spec in specs]
    rounds = math.lcm(*workers) if math.lcm(*workers) <= _MOST_ROUNDS else max(workers)
    return max(1.0, rounds * batch_samples)


def read_before(plan: Plan, pilots: tuple[Pilot, Pilot], rounds: float, each: bool) -> Plan | None:
    """`plan` cut to what a pilot has read already, with the same seed and so in the same order;
    None when too little would be left. `each`: both arms must have read it, not one of them.
    `rounds`: samples that are timed as one."""
    ended = [pilot.whole_epoch for pilot in pilots]
    if all(ended) or (any(ended) and not each):
        return plan
    if plan.mode == "epochs":
        return None
    seen = [math.inf if pilot.whole_epoch else pilot.timed_samples for pilot in pilots]
    read = min(seen) if each else max(seen)
    if plan.samples <= read:
        return plan
    if read < max(rounds, _ENOUGH_READ * plan.samples):
        return None
    return plan._replace(samples=int(read // rounds * rounds))


def read_once(plan: Plan, pilots: tuple[Pilot, Pilot]) -> Plan:
    """`plan` cut to what one epoch holds: what is read again is not cold any more."""
    steady = min(pilot.steady_batches * pilot.batch_samples for pilot in pilots)
    if plan.samples <= steady or steady < 1:
        return plan
    return plan._replace(samples=int(steady))


def first_epoch(plan: Plan) -> Plan:
    """`plan` for a cold page cache: what is read again is not cold any more."""
    return plan._replace(mode="epochs", epochs=1, let_pass=0)


def epochs_plan(first: Plan, pilots: tuple[Pilot, Pilot], left_s: float) -> Plan | None:
    """Whole epochs, or None when they are too long for the budget."""
    longest = max(pilot.epoch_s for pilot in pilots)
    pair_s = sum(2 * pilot.epoch_s for pilot in pilots)
    if not math.isfinite(pair_s) or pair_s * 5 > left_s:
        return None
    room_s = left_s / (_PAIRS + 1) / 2 - longest
    epochs = max(1, min(round(_STRETCH_S / longest), int(room_s / longest), 50))
    return first._replace(mode="epochs", epochs=epochs)


def _samples(spec: LoaderSpec) -> float:
    try:
        return float(len(spec.dataset if spec.iterable else spec.sampler))
    except (TypeError, NotImplementedError):
        return math.inf


def _batches(spec: LoaderSpec) -> float:
    if not spec.iterable and spec.batch_sampler is not None:
        try:
            return float(len(spec.batch_sampler))
        except (TypeError, NotImplementedError):
            return math.inf
    return _samples(spec) / (spec.batch_size or 1)
