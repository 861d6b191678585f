"""More batches prefetched by each worker."""

from __future__ import annotations

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle

_AT_LEAST = 4


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers == 0:
        return "only workers prefetch, and num_workers is 0"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(prefetch_factor=max(_AT_LEAST, 2 * spec.prefetch))


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="prefetch",
    title="Deeper prefetch",
    effect="Doubles prefetch_factor (to 4 at least), so that slow samples are absorbed by batches "
    "that are ready. It does not raise the mean rate of the workers.",
    cost="Memory: workers x prefetch_factor batches are held ready.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=20,
)
