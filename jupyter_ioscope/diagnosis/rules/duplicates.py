"""Several workers make the same batches of a stream."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.duplicates import copies_in, wasted_fraction
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent

# Of the samples: two workers that share nothing out make a half of them in vain, and all but a few
# of a stream that somebody divides have no copy. Below it the samples may just be alike.
_MANY = 0.25


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if every sample came once: the copies' part of the samples, and so
    of the time in which batches came. Where they are many the data is wrong, too: that comes before
    anything else."""
    if facts.alone or facts.loader.dataset_kind != "iterable" or facts.workers < 2:
        return None
    copies = copies_in(facts.fetches)
    if not copies:
        return None
    wasted = wasted_fraction(copies, facts.fetches)
    share = wasted * max(0.0, 1 - sum(facts.start_ups_ns) / facts.loop.wall_ns)
    many = len(copies[0].workers)
    alike = "labels and ids" if copies[0].labels_only else "values"
    epochs = len({row.epoch for row in facts.fetches})
    samples = sum(max(0, row.samples) for row in facts.fetches)
    return finding(
        facts,
        Gain(share, 0.9 * share, min(1.0, 1.1 * share)),
        cause="duplicated_across_workers",
        resource="worker_cpu",
        title=f"Each worker yields the whole stream, so every sample arrives {many} times"
        if many == facts.workers
        else f"{many} of the {facts.workers} workers yield the same samples",
        evidence=(
            f"{copies[0].compared} batches of workers {_listed(copies[0].workers)} were compared, "
            f"the first with the first and so on: the {alike} looked at are the same.",
            f"{percent(wasted)} of the {samples:,} samples made in {epochs} "
            f"epoch{'' if epochs == 1 else 's'} are copies. The model sees them again as if they "
            "were new data.",
        ),
        advice=_advice(facts),
        harm="data" if wasted >= _MANY else "",
    )


def _advice(facts: Facts) -> str:
    own = (
        "Share the stream out in the dataset's __iter__: info = torch.utils.data.get_worker_info() "
        "and then every info.num_workers-th file or sample from info.id on "
        "(itertools.islice(source, info.id, None, info.num_workers))"
    )
    if "datasets" in facts.loader.dataset_class.split("."):
        return (
            "Let the library share it out: pass the datasets.IterableDataset itself to the "
            "DataLoader, and use datasets.distributed.split_dataset_by_node for several machines. "
            f"Or: {own[0].lower()}{own[1:]}."
        )
    return (
        f"{own}. With several machines, split by rank first "
        "(datasets.distributed.split_dataset_by_node does both)."
    )


def _listed(workers: tuple[int, ...]) -> str:
    shown = [str(worker) for worker in workers[:6]]
    if len(workers) > 6:
        return ", ".join(shown) + f" and {len(workers) - 6} more"
    return ", ".join(shown[:-1]) + " and " + shown[-1]


RULE = Rule("duplicates", judge)
