"""More worker processes."""

from __future__ import annotations

import functools

from jupyter_ioscope.capture.cores import cores_per_rank
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._cores import cores_text


def refuse(spec: LoaderSpec, wanted: int = 0) -> str:
    if wanted:
        return f"num_workers is {wanted} already" if spec.num_workers == wanted else ""
    cores = cores_per_rank()
    if spec.num_workers >= cores:
        may_use = f"this process may use {cores_text(cores)}"
        return (
            f"num_workers is {spec.num_workers} already and {may_use}; where samples wait for a "
            f"disk or a network, more can be right: workers={2 * spec.num_workers}"
        )
    return ""


def apply(spec: LoaderSpec, wanted: int = 0) -> LoaderSpec:
    return spec.changed(num_workers=wanted or cores_per_rank())


def code(spec: LoaderSpec, wanted: int = 0) -> str:
    return code_of(spec, apply(spec, wanted))


def number(wanted: int) -> Toggle:
    """Exactly so many: what waits overlaps beyond the cores, and what crowds them needs fewer."""
    return Toggle(
        name=f"workers={wanted}",
        title=f"{wanted} worker process" + ("es" if wanted > 1 else ""),
        effect=f"Sets num_workers to {wanted}, so that samples are made in parallel and ahead of "
        "the loop.",
        cost=_COST,
        refuse=functools.partial(refuse, wanted=wanted),
        apply=functools.partial(apply, wanted=wanted),
        code=functools.partial(code, wanted=wanted),
        order=10,
        decides=_DECIDES,
    )


_DECIDES = "the number of workers"
_COST = (
    "One more process each, with its own memory and a start-up of its own every epoch. An "
    "iterable dataset that does not share its samples out between workers then yields each one "
    "several times; the same-data check looks for that."
)

TOGGLE = Toggle(
    name="workers",
    title="Worker processes for all cores",
    effect="Sets num_workers to the cores this process may use (its part of them, where several "
    "ranks train on this machine), so that samples are made in parallel and ahead of the loop. "
    "Where samples wait (for a disk, a network), cores divided by the part of its time that a "
    "worker computes are right: a number may follow, as in workers=8, and with a profile of the "
    "loop the number is chosen that its waits and the free memory allow.",
    cost=_COST,
    refuse=refuse,
    apply=apply,
    code=code,
    order=10,
    number=number,
    decides=_DECIDES,
)
