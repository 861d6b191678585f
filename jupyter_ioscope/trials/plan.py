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
_MOST_ROUNDS = 64  # batches; 7 against 8 workers have a common round of 56


@dataclass(frozen=True)
class Pilot:
    """What the pilot of one arm showed."""

    samples_per_s: float
    batch_samples: float
    overhead_s: float  # of a trial, beyond its timed stretch
    epoch_s: float  # of a whole epoch; inf when its end is not known
    steady_batches: float  # of an epoch, after the discarded ones; inf when not known


def pilot_plan(spec_a: LoaderSpec, spec_b: LoaderSpec, seed: int, budget_s: float) -> Plan:
    """A short steady stretch; both arms discard alike so that they time the same samples."""
    return Plan(
        mode="steady",
        seed=seed,
        discard=max(spec_a.discard, spec_b.discard),
        seconds=min(_PILOT_S, budget_s / 30),
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
    # Whole rounds of the workers of both arms, so that both time exactly the same samples.
    workers = [max(1, spec.num_workers) for spec in specs]
    rounds = math.lcm(*workers) if math.lcm(*workers) <= _MOST_ROUNDS else max(workers)
    unit = max(1.0, rounds * largest)
    samples = math.ceil(unit * max(1, math.ceil(min(wanted, affordable) / unit)))
    expected_s = samples / slower + max(pilot.overhead_s for pilot in pilots)
    return first._replace(samples=samples, max_s=4 * expected_s + 5)


def read_once(plan: Plan, pilots: tuple[Pilot, Pilot]) -> Plan:
    """`plan` cut to what one epoch holds: what is read again is not cold any more."""
    steady = min(pilot.steady_batches * pilot.batch_samples for pilot in pilots)
    if plan.samples <= steady or steady < 1:
        return plan
    return plan._replace(samples=int(steady))


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
