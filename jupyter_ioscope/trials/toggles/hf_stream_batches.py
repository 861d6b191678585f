"""A stream of a Hugging Face dataset that makes the batches itself, in one piece from Arrow."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.code import by_trainer, code_of
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _batched, _hf_stream
from jupyter_ioscope.trials.toggles._learn import agree, first_batches, raise_refusal, short


def refuse(spec: LoaderSpec) -> str:
    reason = _hf_stream.no_stream(spec)
    if reason:
        return reason
    if not hasattr(spec.dataset, "batch"):
        return "this version of datasets has no IterableDataset.batch: it came with datasets 3.1"
    if spec.batch_size is None:
        made = "the stream makes the batches already" if spec.rows_in_batch else "there are none"
        return f"{made} (batch_size=None)"
    if not _batched.is_default(spec.collate_fn):
        return "its collate_fn needs the samples one by one"
    if by_trainer(spec):
        return "a Trainer joins the rows of a stream itself: override get_train_dataloader()"
    if spec.state is not None:
        return f"{spec.loader_class.__name__} is a DataLoader of its own"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Whether the first batches are the same ones, byte for byte."""
    try:
        wanted = [sample_of(batch).digest for batch in first_batches(spec)]
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    try:
        found = [sample_of(batch).digest for batch in first_batches(apply(spec))]
    except Exception as error:
        return {"refusal": f"the stream cannot make batches: {short(error)}"}
    same = agree(wanted, found)
    return {} if same else {"refusal": "the batches of the stream hold other values or types"}


def apply(spec: LoaderSpec) -> LoaderSpec:
    stream, size = spec.dataset, spec.batch_size
    call = ""
    if _format_of(stream) != "torch":
        stream, call = stream.with_format("torch"), ".with_format('torch')"
    stream = stream.batch(size, drop_last_batch=spec.drop_last)
    call += f".batch({size}{', drop_last_batch=True' if spec.drop_last else ''})"
    made = _hf_stream.with_stream(spec, stream, call)
    return made.changed(
        batch_size=None,
        drop_last=False,
        collate_fn=loaded_data().default_convert,
        rows_in_batch=size,
    )


def _format_of(stream: Any) -> str:
    form = getattr(stream, "_formatting", None)
    return str(getattr(form, "format_type", "") or "")


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    return apply(spec)


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="hf_stream_batches",
    title="Batches made by the stream (batch, torch format)",
    effect="The stream cuts batches from its Arrow tables (stream.batch(n)) and makes one tensor "
    "of each column, instead of a row and a small tensor for every sample.",
    cost="The collate function is no longer called. Columns must be such that torch would join "
    "them in the same way, which is looked at first.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=92,
    saves=("to_python", "tensor_build", "dataset_rows", "collate", "stack", "fetch_loop"),
)
