"""A Hugging Face dataset read in a row by every worker, instead of row by row by number."""

from __future__ import annotations

import functools

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.held import held, why_none, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _hf_stream

_SEED = 42


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if found.path:
        return f"{type(spec.dataset).__name__} asks for rows by number"
    form = found.dataset.format
    if form["format_kwargs"] or list(form["columns"]) != list(found.dataset.column_names):
        return (
            "its format covers some columns only, or has options, which a stream cannot take over"
        )
    if spec.state is not None:
        return f"{spec.loader_class.__name__} is a DataLoader of its own, made for rows by number"
    if spec.batch_size is None:
        return "a batch_sampler of its own says which rows make a batch"
    if _hf_stream.shuffled(spec) is None:
        return f"its sampler ({type(spec.sampler).__name__}) chooses rows by number"
    if spec.drop_last and spec.num_workers > 1:
        return "drop_last=True would drop rows of every worker, not only the last ones"
    return ""


def shards(spec: LoaderSpec, wanted: int = 0) -> int:
    """A number of shards that gives every worker the same, and at most one a row."""
    workers = max(1, spec.num_workers)
    return max(1, min(wanted or workers, len(spec.dataset)))


def apply(spec: LoaderSpec, wanted: int = 0) -> LoaderSpec:
    found, number = held(spec), shards(spec, wanted)
    if found is None:
        return spec
    seed = _SEED if _hf_stream.shuffled(spec) else None
    stream = _hf_stream.stream_of(found.dataset, number, seed)
    call = f".to_iterable_dataset(num_shards={number})"
    call += f".shuffle(seed={seed}, buffer_size={_hf_stream.BUFFER})" if seed is not None else ""
    made = with_held(spec, found, stream, call).changed(
        sampler=None, batch_sampler=None, iterable=True
    )
    return made.changed(rows=_hf_stream.rows_of(made, len(found.dataset), number, seed))


def code(spec: LoaderSpec, wanted: int = 0) -> str:
    text = code_of(spec, apply(spec, wanted))
    if _hf_stream.shuffled(spec):
        text += "\n# before each epoch: dataset.set_epoch(epoch), for another order"
    return text


def number(wanted: int) -> Toggle:
    return Toggle(
        name=f"hf_streaming={wanted}",
        title=f"Stream the rows in {wanted} shard" + ("s" if wanted > 1 else ""),
        effect=_EFFECT,
        cost=_COST,
        refuse=functools.partial(_refuse_number, wanted=wanted),
        apply=functools.partial(apply, wanted=wanted),
        code=functools.partial(code, wanted=wanted),
        order=90,
    )


def _refuse_number(spec: LoaderSpec, wanted: int) -> str:
    if wanted < spec.num_workers:
        return f"{wanted} shards would leave some of the {spec.num_workers} workers without any"
    return refuse(spec)


_EFFECT = (
    "Every worker reads shards of its own from beginning to end (to_iterable_dataset), which needs "
    "no look-up of rows. Each row comes once an epoch, which is proven by row numbers."
)
_COST = (
    f"Shuffling is only partial: shards, and rows within a buffer of {_hf_stream.BUFFER:,}. Rows "
    "can no longer be asked for by number, and the loader no longer knows its length."
)

TOGGLE = Toggle(
    name="hf_streaming",
    title="Stream the rows (to_iterable_dataset)",
    effect=_EFFECT,
    cost=_COST,
    refuse=refuse,
    apply=apply,
    code=code,
    order=90,
    number=number,
)
