"""Batches handed out as they become ready, not in the order of their turn."""

from __future__ import annotations

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec, takes_in_order
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers < 2:
        return (
            f"only several workers can overtake each other, and num_workers is {spec.num_workers}"
        )
    if spec.shards == 1:
        return "only several workers can overtake each other, and one reads the only shard"
    if not takes_in_order():
        return "this torch has no in_order: it came with torch 2.6"
    return "" if spec.in_order else "in_order is False already"


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(in_order=False)


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="in_order",
    title="Batches as they become ready (in_order=False)",
    effect="A batch that is ready no longer waits behind a slow one of another worker.",
    cost="Batches come in an order that depends on timing, so a run cannot be repeated exactly; "
    "slow samples tend to come later. Which samples an epoch holds stays the same.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=25,
)
