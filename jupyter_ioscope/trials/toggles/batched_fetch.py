"""A batch from one call of the dataset, instead of one call a sample."""

from __future__ import annotations

import time
from typing import Any

from jupyter_ioscope.trials.code import by_trainer, code_of, dataset_name
from jupyter_ioscope.trials.counting import seed_all
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _batched
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short

_BATCHES = 4
_LEAST = 3  # the first rows, the last ones, and some from all over
_SEED = 7


def refuse(spec: LoaderSpec) -> str:
    if spec.iterable:
        return "samples of an iterable dataset are not asked for by number"
    if spec.batch_size is None and spec.batch_sampler is None:
        return "the loader makes no batches (batch_size=None)"
    if not _batched.is_default(spec.collate_fn):
        return "its collate_fn needs the samples one by one"
    if by_trainer(spec):
        return "a Trainer looks at each row before it joins them: override get_train_dataloader()"
    if not hasattr(spec.dataset, "__len__"):
        return "the dataset does not tell its length"
    return "it is on already" if isinstance(spec.dataset, _batched.Batched) else ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Whether `dataset[many]` gives what joining single items gives, byte for byte, for batches
    from all over the dataset."""
    reasons = []
    chosen = _indices(len(spec.dataset), spec.batch_size or 16)
    until = time.monotonic() + spec.look_s / 2
    wanted: list[str] = []
    try:
        while len(wanted) < len(chosen):
            wanted.append(_one_by_one(spec, chosen[len(wanted)]))
            if time.monotonic() > until:
                chosen = chosen[: max(_LEAST, len(wanted))]
        if wanted != [_one_by_one(spec, indices) for indices in chosen]:
            return {"refusal": "its items are drawn at random, so a batch cannot be compared"}
    except Exception as error:
        return {"refusal": f"items cannot be joined one by one: {short(error)}"}
    for way in _batched.WAYS:
        try:
            seed_all(_SEED)
            batched = _batched.Batched(spec.dataset, way)
            found = [sample_of(batched.__getitems__(row)).digest for row in chosen]
        except Exception as error:
            reasons.append(f"dataset[{way} of indices] raises {short(error)}")
            continue
        if found == wanted:
            return {"way": way}
        reasons.append(f"dataset[{way} of indices] gives something else than its items joined")
    return {"refusal": reasons[0]}


def _one_by_one(spec: LoaderSpec, indices: list[int]) -> str:
    return sample_of(spec.collate_fn([spec.dataset[index] for index in indices])).digest


def _indices(length: int, batch: int) -> list[list[int]]:
    """The first rows, the last ones, and rows from all over, not in order."""
    import random

    batch = max(2, min(batch, length))
    drawn = random.Random(_SEED)
    spread = [drawn.sample(range(length), batch) for _ in range(_BATCHES)]
    return [list(range(batch)), list(range(length - 1, length - 1 - batch, -1)), *spread]


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which way of indexing is right is only known after a look at items.
    return _applied(spec, "array")


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    return _applied(spec, facts["way"])


def _applied(spec: LoaderSpec, way: str) -> LoaderSpec:
    old = dict(spec.written).get("dataset", dataset_name(spec))
    index = {"array": "numpy.asarray(indices)", "tensor": "torch.as_tensor(indices)"}
    lines = (
        *(["import numpy"] if way == "array" else []),
        "import torch",
        "",
        "",
        "class Batched(torch.utils.data.Dataset):",
        "    def __init__(self, dataset):",
        "        self.dataset = dataset",
        "",
        "    def __len__(self):",
        "        return len(self.dataset)",
        "",
        "    def __getitems__(self, indices):",
        f"        batch = self.dataset[{index.get(way, 'indices')}]",
        "        return torch.utils.data.default_convert(batch)",
        "",
        "",
        "def as_it_is(batch):",
        "    return batch",
        "",
        "",
    )
    kept = (row for row in spec.written if row[0] not in ("dataset", "collate_fn"))
    return spec.changed(
        dataset=_batched.Batched(spec.dataset, way),
        collate_fn=_batched.as_it_is,
        before=(*spec.before, *lines),
        written=(*kept, ("dataset", f"Batched({old})"), ("collate_fn", "as_it_is")),
    )


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="batched_fetch",
    title="Fetch a batch by one call",
    effect="Asks the dataset for all samples of a batch at once (__getitems__), so that nothing is "
    "called, built and joined sample by sample.",
    cost="Only for datasets whose own indexing takes many indices: arrays, tensors, TensorDataset, "
    "formatted Hugging Face datasets. Whether the batches are equal is looked at first.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=70,
    saves=("fetch_loop", "collate", "stack", "tensor_build"),
)
