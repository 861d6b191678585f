"""The tensors of a batch on their way from worker to main process, joined into a few."""

from __future__ import annotations

import inspect

from jupyter_ioscope.trials.code import code_of, collate_name
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _packed


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers == 0:
        return "nothing is handed over without workers: num_workers is 0"
    if isinstance(spec.collate_fn, _packed.PackedCollate):
        return "batches are packed already"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    source = inspect.getsource(_packed).splitlines()
    lines = source[source.index("from typing import Any") :]
    own = dict(spec.written).get("collate_fn", collate_name(spec))
    kept = (row for row in spec.written if row[0] != "collate_fn")
    return spec.changed(
        collate_fn=_packed.PackedCollate(spec.collate_fn),
        before=(*spec.before, *lines, "", ""),
        written=(*kept, ("collate_fn", f"PackedCollate({own})")),
    )


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="packed_batches",
    title="Hand batches over as a few large tensors",
    effect="The worker joins all tensors of one type into one, which is shared and then cut into "
    "the same tensors again: a few segments of shared memory a batch instead of one each.",
    cost="One copy of the batch in the worker, and tensors that share memory: one that is kept "
    "keeps the whole batch.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=80,
)
