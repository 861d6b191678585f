"""Time before the first fetch, once or in every epoch."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.spread import ratio_error
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

# A short profile always begins with a start-up: a single one counts when it takes at least this
# part of the loop and this long (forked workers need less; an import or a scan of the data more).
SINGLE_SHARE = 0.15
SINGLE_S = 0.5
SINGLE_ALONE_S = 0.1  # without workers nothing has to be started


def judge(facts: Facts) -> Finding | None:
    """Workers started anew each epoch, else one large start."""
    times = facts.start_ups_ns
    if not times:
        return None
    if facts.workers and len(times) > 1:
        repeated = _restarts(facts, times)
        if repeated.share >= NOISE_SHARE:
            return _restart(facts, times, repeated)
    share = sum(times) / facts.loop.wall_ns
    least_s = SINGLE_ALONE_S if facts.alone else SINGLE_S
    if share < SINGLE_SHARE or sum(times) < least_s * 1e9:
        return None
    return _set_up(facts, times, Gain.of(min(1.0, share), 0.0))


def _restarts(facts: Facts, times: list[int]) -> Gain:
    """All start-ups but the first, which persistent workers would keep."""
    later = [float(time) for time in times[1:]]
    error = ratio_error(later, [1.0] * len(later))
    spread = error * len(later) if error is not None else 0.2 * sum(later)
    wall = facts.loop.wall_ns
    return Gain.of(min(1.0, sum(later) / wall), spread / wall)


def _restart(facts: Facts, times: list[int], gain: Gain) -> Finding:
    usual_s = sum(times[1:]) / len(times[1:]) / 1e9
    return finding(
        facts,
        gain,
        cause="worker_restart_per_epoch",
        resource="start_up",
        title="Workers are started again for every epoch",
        evidence=(
            f"{len(times)} epochs, {seconds(usual_s)} each to start and stop "
            f"{facts.workers} workers.",
        ),
        advice="Use persistent_workers=True, and make the loader once, before all epochs.",
        toggles=("persistent_workers",),
    )


def _set_up(facts: Facts, times: list[int], gain: Gain) -> Finding:
    spawned = facts.loader.start_method not in (None, "fork")
    inside = sum(row.iter_end_ns - row.iter_start_ns for row in facts.profile.epochs)
    return finding(
        facts,
        gain,
        cause="first_batch_setup",
        resource="start_up",
        title="It takes long until the first sample is fetched",
        evidence=(
            f"{seconds(sum(times) / 1e9)} passed before fetching began, "
            f"{seconds(inside / 1e9)} of them inside iter().",
            f"{percent(gain.share)} of the loop's time.",
        ),
        advice=_set_up_advice(facts),
        toggles=("persistent_workers",) if spawned and len(times) > 1 else (),
    )


def _set_up_advice(facts: Facts) -> str:
    method = facts.loader.start_method
    if method not in (None, "fork"):
        return (
            f"Workers are started by {method}: each imports your libraries and unpacks the "
            "dataset. Keep them (persistent_workers=True) and keep the dataset small."
        )
    once = "Do the set-up once, before the loop: scans of the data, sampling weights, skipping."
    if facts.workers > facts.cores:
        return f"{once} {facts.workers} workers also take longer to start than fewer."
    return once


RULE = Rule("start_up", judge)
