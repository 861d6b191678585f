"""More worker processes."""

from __future__ import annotations

from jupyter_ioscope.capture.cores import usable_cores
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    cores = usable_cores()
    if spec.num_workers >= cores:
        return f"num_workers is {spec.num_workers} already and this process may use {cores} cores"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(num_workers=usable_cores())


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="workers",
    title="Worker processes for all cores",
    effect="Sets num_workers to the cores this process may use, so that samples are made in "
    "parallel and ahead of the loop.",
    cost="One more process each, with its own memory and a start-up of its own every epoch. An "
    "iterable dataset that does not share its samples out between workers then yields each one "
    "several times; the same-data check looks for that.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=10,
)
