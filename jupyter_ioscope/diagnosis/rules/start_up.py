"""Time before the first fetch, once or in every epoch."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.before import Spent, first_fetch_extra_ns, own_sampler, starting
from jupyter_ioscope.diagnosis.consumer_waits import consumer_reading
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._spawned import spawned, until_entered_ns
from jupyter_ioscope.diagnosis.spread import ratio_error
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.records import LoaderInfo
from jupyter_ioscope.units import percent, seconds

# A short profile always begins with a start-up: a single one counts when it takes at least this
# part of the loop and this long (forked workers need less; an import or a scan of the data more).
SINGLE_SHARE = 0.15
SINGLE_S = 0.5
SINGLE_ALONE_S = 0.12  # without workers nothing has to be started

# Causes that a long first fetch would be taken for: its work is counted with that of all fetches.
_INSIDE_FETCHES = (
    "no_workers_cpu_bound", "no_workers_latency_bound", "decode_cpu", "text_parse_per_item",
    "read_amplification", "reopen_per_item", "disk_latency", "disk_bandwidth", "page_fault_io",
    "gc_pauses",
)  # fmt: skip


class _Start(NamedTuple):
    """Set-up of all epochs. `in_fetch_ns` is what first fetches took longer than later ones."""

    whole_ns: int
    in_fetch_ns: int
    spent: Spent


def judge(facts: Facts) -> Finding | None:
    """Workers started anew each epoch, else one large start. Starts of the main loader are in both:
    those that it repeats come first, and those of another loader where they take longer."""
    again = _most_restarted(facts)
    if again is None or again.gain.share < NOISE_SHARE:
        return _single(facts)
    single = None if again.of_the_main_loader else _single(facts)
    return single if single is not None and single.share > again.gain.share else _restart(again)


def _single(facts: Facts) -> Finding | None:
    """One large start."""
    times = facts.start_ups_ns
    if not times:
        return None
    start = _start(facts, times)
    share = start.whole_ns / facts.loop.wall_ns
    least_s = SINGLE_ALONE_S if facts.alone else SINGLE_S
    if share < SINGLE_SHARE or start.whole_ns < least_s * _slowed(facts) * 1e9:
        return None
    return _set_up(facts, start, Gain.of(min(1.0, share), 0.0))


def _slowed(facts: Facts) -> float:
    """How many times as long a start takes because the cores are busy with other things. Of the
    loop's own thread, the time in line for a core is known; started processes share the cores with
    other programs. Where those were not measured, fetches tell how long one stands in line."""
    reading = consumer_reading(facts.profile)
    if facts.alone and reading is not None:
        seen_ns = max(1, reading.last_ns - reading.first_ns)
        return seen_ns / max(0.25 * seen_ns, seen_ns - reading.run_queue_ns)
    try:
        taken = facts.taken_cores
    except NotMeasuredError:
        ran_ns, line_ns = facts.part_ns("cpu"), facts.part_ns("run_queue")
        return (ran_ns + line_ns) / max(0.25 * (ran_ns + line_ns), ran_ns, 1)
    return facts.cores / max(0.25 * facts.cores, facts.cores - taken)


def _start(facts: Facts, times: list[int]) -> _Start:
    """Set-up that the user can do something about. A spawned worker has to start an interpreter
    and to import its libraries: what passes until it is there is the price of spawning."""
    spent = starting(facts.profile)
    whole_ns = sum(times)
    if facts.alone:
        extra_ns = _own_first_fetch_ns(facts)
        return _Start(whole_ns + extra_ns, extra_ns, spent)
    before_ns = _until_first_fetch_ns(facts)
    if spawned(facts):
        entered_ns = until_entered_ns(facts)
        # Drawing the order of the samples comes first, and imports hide it.
        sampling_ns = int(spent.fraction(kinds.SAMPLING, "") * _inside_iter_ns(facts))
        in_fetch_ns = max(0, whole_ns - before_ns - _stopping_ns(facts))
        late_ns = max(0, before_ns - entered_ns) if entered_ns is not None else 0
        return _Start(sampling_ns + late_ns + in_fetch_ns, in_fetch_ns, spent)
    return _Start(whole_ns, max(0, whole_ns - before_ns - _stopping_ns(facts)), spent)


def _own_first_fetch_ns(facts: Facts) -> int:
    try:
        return first_fetch_extra_ns(facts.fetches)
    except NotMeasuredError:
        return 0


def _inside_iter_ns(facts: Facts) -> int:
    return sum(row.iter_end_ns - row.iter_start_ns for row in facts.profile.epochs)


def _until_first_fetch_ns(facts: Facts) -> int:
    """From `iter()` to the first fetch of each epoch, or the first batch where it is unknown."""
    found = 0
    for epoch in facts.profile.epochs:
        rows = [row for row in facts.batches if row.epoch == epoch.epoch]
        if rows:
            fetch = facts.made.get(rows[0].batch)
            until = fetch.start_ns if fetch else epoch.iter_end_ns
            found += max(0, min(until, rows[0].wait_end_ns) - epoch.iter_start_ns)
    return found


def _stopping_ns(facts: Facts) -> int:
    """From the last step of each epoch to its end: stopping the workers."""
    found = 0
    for epoch in facts.profile.epochs:
        ends = [row.step_end_ns for row in facts.batches if row.epoch == epoch.epoch]
        if ends and epoch.end_ns is not None:
            found += max(0, epoch.end_ns - max(ends))
    return found


class _Restarts(NamedTuple):
    """A loader whose workers are started again and again."""

    facts: Facts
    loader: LoaderInfo
    times: list[int]
    gain: Gain

    @property
    def of_the_main_loader(self) -> bool:
        return self.loader.loader == self.facts.loader.loader


def _most_restarted(facts: Facts) -> _Restarts | None:
    """Of all loaders, the one whose later starts took longest: it may be one beside the main one,
    a validation in the middle of training, say."""
    found = []
    for info in facts.profile.loaders:
        if info.num_workers and facts.first_alike(info.loader):
            times = facts.start_ups_of(info.loader)
            if len(times) > 1:
                found.append(_Restarts(facts, info, times, _restarts(facts, times)))
    return max(found, key=lambda row: row.gain.share, default=None)


def _restarts(facts: Facts, times: list[int]) -> Gain:
    """All start-ups but the first, which persistent workers would keep."""
    later = [float(time) for time in times[1:]]
    error = ratio_error(later, [1.0] * len(later))
    spread = error * len(later) if error is not None else 0.2 * sum(later)
    wall = facts.loop.wall_ns
    return Gain.of(min(1.0, sum(later) / wall), spread / wall)


def _restart(again: _Restarts) -> Finding:
    facts, times, workers = again.facts, again.times, again.loader.num_workers
    usual_s = sum(times[1:]) / len(times[1:]) / 1e9
    which = "" if again.of_the_main_loader else f" of the loader of {again.loader.dataset_class}"
    return finding(
        facts,
        again.gain,
        cause="worker_restart_per_epoch",
        resource="start_up",
        title="Workers are started again for every epoch",
        evidence=(
            f"{len(times)} epochs{which}, {seconds(usual_s)} each to start and stop "
            f"{workers} worker{'' if workers == 1 else 's'}.",
        ),
        advice="Use persistent_workers=True, and make the loader once, before all epochs.",
        toggles=("persistent_workers",),
    )


def _set_up(facts: Facts, start: _Start, gain: Gain) -> Finding:
    inside = start.in_fetch_ns > 0.5 * start.whole_ns
    kind = "" if inside else start.spent.largest
    places = start.spent.places
    return finding(
        facts,
        gain,
        cause="first_batch_setup",
        resource="start_up",
        title="The first fetch takes much longer than the others"
        if inside
        else "It takes long until the first sample is fetched",
        evidence=(
            f"{seconds(start.whole_ns / 1e9)} passed before fetching went its usual way"
            + (
                f", {seconds(start.in_fetch_ns / 1e9)} of them inside first fetches."
                if inside
                else "."
            ),
            f"{percent(start.spent.fraction(kind))} of it was {kind}"
            + (f", mostly in {places[0]}." if places else ".")
            if kind
            else "",
            f"{percent(gain.share)} of the loop's time.",
        ),
        advice=_advice(facts, inside, kind),
        where=places[0] if places and not inside else "",
        refines=_INSIDE_FETCHES if inside else (),
    )


def _skips_what_was_made(facts: Facts) -> bool:
    """Whether a stream of `datasets` skips rows after it has transformed them."""
    behind = facts.loader.fact("stream").partition("Skip")[2]
    return "Mapped" in behind or "Filtered" in behind


def _advice(facts: Facts, inside: bool, kind: str) -> str:
    own = own_sampler(facts.profile) if kind == kinds.SAMPLING else ""
    if own:
        again = "at the start of every epoch" if len(facts.start_ups_ns) > 1 else "at the start"
        return (
            f"The order of the samples is made {again}, in {own}: compute once what the sampler "
            "needs (lengths, classes, weights), keep it in an array, and let it look there instead "
            "of getting items of the dataset."
        )
    if kind == kinds.SAMPLING:
        return (
            "Make the order of the samples cheaper: draw with replacement "
            "(WeightedRandomSampler(..., replacement=True)), draw once and keep the list of "
            "indices, or shuffle within shards instead of over all rows."
        )
    if inside and _skips_what_was_made(facts):
        return (
            "Skip before the rows are made: stream.skip(n) before map, filter and decoding, and "
            "whole shards instead of rows; or resume with stream.load_state_dict(...)."
        )
    if inside:
        return (
            "Do once, and keep the result, what the first fetch does: reading or building an "
            "index, scanning files, filling a buffer, skipping to a position. An index saved in a "
            "binary format loads in no time; skip whole shards instead of single samples."
        )
    if spawned(facts):
        return (
            f"Workers are started by {facts.loader.start_method}: each does the set-up again. Keep "
            "them (persistent_workers=True), and do once what all of them need."
        )
    once = "Do the set-up once, before the loop: scans of the data, sampling weights, skipping."
    if facts.workers > facts.cores:
        return f"{once} {facts.workers} workers also take longer to start than fewer."
    return once


RULE = Rule("start_up", judge)
