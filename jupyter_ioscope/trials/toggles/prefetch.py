"""More batches prefetched by each worker."""

from __future__ import annotations

import functools

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle

_AT_LEAST = 4


def refuse(spec: LoaderSpec, wanted: int = 0) -> str:
    if spec.num_workers == 0:
        return "only workers prefetch, and num_workers is 0"
    if wanted and spec.prefetch == wanted:
        return f"prefetch_factor is {wanted} already"
    return ""


def apply(spec: LoaderSpec, wanted: int = 0) -> LoaderSpec:
    return spec.changed(prefetch_factor=wanted or max(_AT_LEAST, 2 * spec.prefetch))


def code(spec: LoaderSpec, wanted: int = 0) -> str:
    return code_of(spec, apply(spec, wanted))


def number(wanted: int) -> Toggle:
    return Toggle(
        name=f"prefetch={wanted}",
        title=f"{wanted} batches ahead for each worker",
        effect=f"Sets prefetch_factor to {wanted}. It absorbs slow samples by batches that are "
        "ready, and does not raise the mean rate of the workers.",
        cost=_COST,
        refuse=functools.partial(refuse, wanted=wanted),
        apply=functools.partial(apply, wanted=wanted),
        code=functools.partial(code, wanted=wanted),
        order=20,
    )


_COST = "Memory: workers x prefetch_factor batches are held ready."

TOGGLE = Toggle(
    name="prefetch",
    title="Deeper prefetch",
    effect="Doubles prefetch_factor (to 4 at least), so that slow samples are absorbed by batches "
    "that are ready. It does not raise the mean rate of the workers.",
    cost=_COST,
    refuse=refuse,
    apply=apply,
    code=code,
    order=20,
    number=number,
)
