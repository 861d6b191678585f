"""A stream has fewer shards than there are workers: some have nothing to do."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding

_GENERAL = (
    "decode_cpu",
    "no_workers_cpu_bound",
    "no_workers_latency_bound",
    "disk_latency",
    "disk_bandwidth",
    "network_latency",
    "page_fault_io",
    "slow_collate",
    "uneven_shards",
    "per_sample_fetch",
    "text_parse_per_item",
)


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if the workers without data took their part: waits divide among all
    of them, CPU among as many as there are cores."""
    idle = facts.workers_without_work
    if facts.alone or facts.loader.dataset_kind != "iterable" or not idle:
        return None
    busy, workers = facts.workers - idle, facts.workers
    on_cores = max(busy, min(workers, int(_free_cores(facts))))
    without = Without(cpu=1 - busy / on_cores, off_cpu=1 - busy / workers)
    shards = HfFacts(facts).number("shards")
    return finding(
        facts,
        facts.gain(without),
        cause="shards_fewer_than_workers",
        resource="none",
        title=_title(idle, workers, shards),
        evidence=(
            f"All batches came from {busy} of {workers} workers.",
            f"The stream has {shards:,} shards, and a shard is read by one worker."
            if shards > 1
            else "",
            _words.where_line(facts),
        ),
        advice=_advice(facts, workers, shards),
        where=facts.where(),
        # Fewer workers do the same: they cure nothing, and free what the idle ones hold.
        toggles=("hf_reshard",) if shards > 0 else (),
        refines=_GENERAL,
    )


def _title(idle: int, workers: int, shards: int) -> str:
    if shards == 1:
        others = "the other one stands" if idle == 1 else f"the other {idle} stand"
        return f"The stream is one shard, so one worker does all the work and {others} idle"
    return f"{idle} of the {workers} workers get nothing to do"


def _free_cores(facts: Facts) -> float:
    try:
        return facts.cores - facts.taken_cores
    except NotMeasuredError:
        return facts.cores


def _advice(facts: Facts, workers: int, shards: int) -> str:
    fewer = f"With the data as it is, num_workers={max(1, shards)} does the same."
    if facts.loader.fact("kind"):
        return (
            f"Divide the data into at least {workers} shards, best {2 * workers}: more files, a "
            f"list in gen_kwargs of from_generator, to_iterable_dataset(num_shards="
            f"{2 * workers}) for a table, or stream.reshard() for Parquet files. {fewer}"
        )
    return (
        f"Divide the data into at least {workers} parts and let worker k read every "
        "num_workers-th of them from the k-th on (torch.utils.data.get_worker_info()). "
        "Or use fewer workers: those without data only cost memory and start-up."
    )


RULE = Rule("shards", judge)
