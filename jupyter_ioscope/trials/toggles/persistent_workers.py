"""Workers that stay alive between epochs."""

from __future__ import annotations

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers == 0:
        return "there are no workers to keep: num_workers is 0"
    return "persistent_workers is on already" if spec.persistent_workers else ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(persistent_workers=True)


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="persistent_workers",
    title="Keep workers between epochs",
    effect="Workers are started once and kept, so that every epoch after the first begins "
    "without their start-up. Within an epoch nothing changes.",
    cost="The workers' memory stays taken between epochs, and changes made to the dataset object "
    "between epochs no longer reach them.",
    refuse=refuse,
    apply=apply,
    code=code,
    end_point="epochs",
    order=30,
)
