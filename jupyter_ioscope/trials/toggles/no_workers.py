"""No worker processes, for samples that are in memory already."""

from __future__ import annotations

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    return "num_workers is 0 already" if spec.num_workers == 0 else ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(num_workers=0, prefetch_factor=None, persistent_workers=False)


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="no_workers",
    title="No worker processes",
    effect="Samples are fetched in the main process: nothing is started, and no batch is handed "
    "over. Right where a batch costs less to make than to hand over.",
    cost="Fetching no longer overlaps the loop's own step.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=10,
    decides="the number of workers",
)
