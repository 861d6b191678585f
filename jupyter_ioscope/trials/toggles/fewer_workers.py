"""No more workers than cores, or than there are shards to read."""

from __future__ import annotations

from jupyter_ioscope.capture.cores import cores_per_rank
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._cores import cores_text


def most_useful(spec: LoaderSpec) -> int:
    """The workers that find a core and a shard of their own."""
    return min(cores_per_rank(), spec.shards or cores_per_rank())


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers <= most_useful(spec):
        cores = cores_text(cores_per_rank())
        return f"num_workers is {spec.num_workers}, and this process may use {cores}"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(num_workers=most_useful(spec))


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="fewer_workers",
    title="No more workers than cores or shards",
    effect="Sets num_workers to the cores this process may use, or to the shards of a stream where "
    "there are fewer: a worker without a core or a shard of its own adds nothing.",
    cost="Workers that wait instead of computing overlap less: where samples wait for a disk or a "
    "network, more workers than cores are right.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=10,
    decides="the number of workers",
)
