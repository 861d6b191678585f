"""The dataset is pickled for every worker that is started, and unpickled in each."""

from __future__ import annotations

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.before import starting, worker_starts
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._spawned import spawned
from jupyter_ioscope.diagnosis.steps import samples_per_s
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

LEAST_SHARE = 0.15
LEAST_S = 0.3
# Without stacks of the workers: unpacking takes at least as long as packing.
UNPACK_AT_LEAST = 1.0


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the dataset came to the workers for nothing. What a worker
    needs to start and to import its libraries is not in it: that is the price of spawning."""
    if not spawned(facts) or not facts.start_ups_ns:
        return None
    if facts.profile.stacks is None:
        raise NotMeasuredError("what the workers' start is made of", "stacks were not sampled")
    rate = samples_per_s(facts.profile)
    if not rate:
        return None
    spent = starting(facts.profile).kinds
    packing_s = spent.get(kinds.PICKLING, 0.0) / rate
    imports, whole = worker_starts(facts.profile)
    # Sending more than a pipe holds (64 kB) waits until the new worker reads: without it the others
    # would start meanwhile.
    waiting_s = spent.get(kinds.SENDING, 0.0) / rate * (1 - 1 / max(1, facts.workers))
    least_s = max(UNPACK_AT_LEAST * packing_s, waiting_s)
    unpacking_s = (whole - imports) / rate if whole else least_s
    start_s = sum(facts.start_ups_ns) / 1e9
    cost_s = min(start_s, packing_s + unpacking_s)
    share = min(1.0, cost_s / facts.loop_s)
    if share < LEAST_SHARE or cost_s < LEAST_S:
        return None
    samples = max(1.0, cost_s * rate)
    return finding(
        facts,
        Gain.of(share, min(0.2, share / samples**0.5)),
        cause="spawn_pickles_dataset",
        resource="start_up",
        title="The dataset is shipped to every worker before the first batch",
        evidence=(
            f"Starting {facts.workers} workers took {seconds(start_s)}: {seconds(packing_s)} to "
            f"pickle the dataset in this process, "
            + (
                f"{seconds(unpacking_s)} to unpickle it in the workers, one after the other."
                if whole
                else f"{seconds(unpacking_s)} or more until the workers have read it, one after "
                "the other."
            ),
            f"Importing libraries is {percent(imports / whole)} of the workers' start."
            if whole
            else "",
        ),
        advice="Keep what can be pickled at once in the dataset: paths, an index or arrays "
        "instead of lists of Python objects, and open or load the rest in the worker at the first "
        "item. persistent_workers=True pays for it once"
        + (', and multiprocessing_context="fork" not at all.' if facts.profile.machine.system
           .startswith("Linux") else "."),
        toggles=("start_method", "persistent_workers")
        if len(facts.start_ups_ns) > 1
        else ("start_method",),
        refines=("first_batch_setup", "worker_restart_per_epoch"),
    )  # fmt: skip


RULE = Rule("spawn_dataset", judge)
