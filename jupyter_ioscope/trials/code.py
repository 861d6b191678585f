"""The code a user would write to get an arm's loader."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from jupyter_ioscope.model.records import DEFAULT_PREFETCH
from jupyter_ioscope.trials.prepared import TRAINER, is_seedable, order_of
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data

_DEFAULTS: dict[str, object] = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "pin_memory": False,
    "timeout": 0,
    "in_order": True,
}


def code_of(spec_a: LoaderSpec, spec_b: LoaderSpec, name: str = "loader") -> str:
    """The call that builds `spec_b`, with what changed from `spec_a` marked.

    The text runs where `name` is bound to the user's loader: what cannot be written down (the
    dataset, functions, samplers) is taken from it. Empty when nothing changed.
    """
    changes = _changes(spec_a, spec_b)
    before = list(spec_b.before[len(spec_a.before) :])
    said = dict(spec_b.written)
    if not changes and spec_a.written == spec_b.written:
        return "\n".join(before)
    if by_trainer(spec_b):
        return "\n".join([*before, *_for_trainer(spec_b, said, changes)])
    if spec_b.direct:
        return "\n".join([*before, f"{name} = {said.get('dataset', name)}"])
    if spec_b.state is not None and spec_b.notes:
        lines = [*before, f"# where the {spec_b.loader_class.__name__} is made:"]
        new = [f"{key}={said[key]}" for key in said] + list(changes)
        return "\n".join([*lines, *(f"#     {line}" for line in new)])
    taken = {key: f"{name}.{key}" for key in _taken(spec_b)} | said
    dataset = dataset_name(spec_b).replace("loader", name, 1)
    arguments = [taken.pop("dataset", dataset), *_order(spec_b, name)]
    arguments += [f"{key}={value}" for key, value in taken.items()]
    arguments += [_line(key, value) for key, value in _written(spec_b) if key not in changes]
    lines = [f"    {text}," for text in arguments]
    lines += [f"    {key}={new!r},  # was {old!r}" for key, (old, new) in changes.items()]
    before += _import_of(spec_b.loader_class)
    call = f"{spec_b.loader_class.__name__}("
    if spec_b.prepared is None:
        return "\n".join([*before, f"{name} = {call}", *lines, ")"])
    before += _ranks_note(spec_b, dataset)
    return "\n".join([*before, f"{name} = accelerator.prepare({call}", *lines, "))"])


def _import_of(kind: type) -> list[str]:
    """The line that makes the class known by its name where the user's program does not know it."""
    known = getattr(sys.modules.get("__main__"), kind.__name__, None) is kind
    if known or kind.__module__ == "__main__" or kind.__qualname__ != kind.__name__:
        return []
    data = loaded_data()
    module = data.__name__ if kind is data.DataLoader else kind.__module__
    return [f"from {module} import {kind.__name__}", ""]


def _ranks_note(spec: LoaderSpec, dataset: str) -> list[str]:
    """A stream of `datasets` that was divided among ranks does not tell what it was cut from."""
    ranks = spec.prepared.ranks if spec.prepared is not None else 1
    if not spec.iterable or ranks == 1 or dataset.endswith(".dataset.dataset"):
        return []
    return [f"# {dataset} may be the part of one of {ranks} ranks: give all of it"]


def dataset_name(spec: LoaderSpec) -> str:
    """How the user's code names the dataset of a loader."""
    if spec.direct:
        return "loader"
    if by_trainer(spec):
        return f"trainer.{_dataset_of(spec)}"
    # Accelerate's own layer gives a rank its part; preparing again puts another one around it.
    layered = spec.prepared is not None and type(spec.dataset).__name__ == "IterableDatasetShard"
    return "loader.dataset.dataset" if layered else "loader.dataset"


def collate_name(spec: LoaderSpec) -> str:
    """How the user's code names the function that joins samples."""
    return "trainer.data_collator" if by_trainer(spec) else "loader.collate_fn"


def _dataset_of(spec: LoaderSpec) -> str:
    evaluates = spec.prepared is not None and spec.prepared.evaluates
    return "eval_dataset" if evaluates else "train_dataset"


def by_trainer(spec: LoaderSpec) -> bool:
    """Whether a Hugging Face Trainer makes the loader."""
    return spec.prepared is not None and spec.prepared.by == TRAINER


def _for_trainer(
    spec: LoaderSpec, said: dict[str, str], changes: dict[str, tuple[object, object]]
) -> Iterator[str]:
    """A Trainer makes its loaders itself: from its arguments, its dataset and its collator."""
    options = {key: pair for key, pair in changes.items() if key in _OPTIONS}
    if options:
        new = ", ".join(f"dataloader_{key}={value!r}" for key, (_, value) in options.items())
        yield f"# TrainingArguments(..., {new})"
        yield "# the same for a Trainer that is there, before train():"
    for key, (old, value) in options.items():
        yield f"trainer.args.dataloader_{key} = {value!r}  # was {old!r}"
    for key, value in said.items():
        if key == "multiprocessing_context":
            yield f"trainer.args.dataloader_multiprocessing_context = {value}"
        elif key == "dataset":
            yield f"trainer.{_dataset_of(spec)} = {value}"
            if spec.iterable:
                yield "# a stream has no length: TrainingArguments(..., max_steps=...)"
        elif key == "collate_fn":
            yield f"trainer.data_collator = {value}"
        else:
            yield f"# in a get_train_dataloader() of your own: DataLoader(..., {key}={value})"
    for key in changes.keys() - options.keys():
        yield f"# in a get_train_dataloader() of your own: {key}={changes[key][1]!r}"


# What TrainingArguments knows, each with "dataloader_" before it.
_OPTIONS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "in_order")


def _changes(a: LoaderSpec, b: LoaderSpec) -> dict[str, tuple[object, object]]:
    pairs = {key: (_value(a, key), _value(b, key)) for key in _DEFAULTS}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _value(spec: LoaderSpec, key: str) -> object:
    if key == "prefetch_factor":
        # torch's own default need not be written, nor is it a change when workers come or go.
        return None if spec.prefetch in (0, DEFAULT_PREFETCH) else spec.prefetch
    return getattr(spec, key)


def _line(key: str, value: object) -> str:
    return f"{key}={value!r}"


def _written(spec: LoaderSpec) -> list[tuple[str, object]]:
    rows = [(key, _value(spec, key)) for key in _DEFAULTS]
    return [(key, value) for key, value in rows if value != _DEFAULTS[key]]


def _order(spec: LoaderSpec, name: str) -> list[str]:
    """The arguments that say which samples make a batch."""
    if spec.prepared is not None and spec.batch_size is None and order_of(spec.batch_sampler):
        # Each rank's part of them: Accelerate shares out what the user gave.
        size, sampler, drop_last = order_of(spec.batch_sampler) or (None, None, False)
        spec = spec.changed(batch_size=size, sampler=sampler, drop_last=drop_last)
    if spec.iterable:
        lines = [_line("batch_size", spec.batch_size)]
    elif spec.batch_size is None:
        if spec.batch_sampler is not None:
            return [f"batch_sampler={name}.batch_sampler"]
        return ["batch_size=None", f"sampler={name}.sampler"]
    else:
        lines = [_line("batch_size", spec.batch_size), *_sampler(spec, name)]
    return [*lines, "drop_last=True"] if spec.drop_last else lines


def _sampler(spec: LoaderSpec, name: str) -> list[str]:
    data = loaded_data()
    sampler = spec.sampler
    if type(sampler) is data.SequentialSampler:
        return []
    if (
        type(sampler) is data.RandomSampler
        and not sampler.replacement
        and sampler.generator is spec.generator
        and sampler.num_samples == len(sampler.data_source)
    ):
        return ["shuffle=True"]
    if spec.prepared is not None:
        return ["shuffle=True" if is_seedable(sampler) else f"sampler={name}.get_sampler()"]
    return [f"sampler={name}.sampler"]


def _taken(spec: LoaderSpec) -> list[str]:
    """Arguments that are objects: taken from the user's loader when they are not the default."""
    collate = loaded_data()._utils.collate
    rows = []
    if spec.collate_fn not in (collate.default_collate, collate.default_convert):
        rows.append("collate_fn")
    rows += [
        key
        for key in ("worker_init_fn", "generator", "multiprocessing_context")
        if getattr(spec, key) is not None
    ]
    return rows
