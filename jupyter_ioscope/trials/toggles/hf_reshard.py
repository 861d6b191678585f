"""A stream of few files in more shards, so that every worker has one."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _hf_stream
from jupyter_ioscope.trials.toggles._hf_table_shards import in_pieces, pieces_for
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short


def refuse(spec: LoaderSpec) -> str:
    reason = _hf_stream.no_stream(spec)
    if reason:
        return reason
    if not hasattr(spec.dataset, "reshard"):
        return "this version of datasets has no IterableDataset.reshard"
    if spec.num_workers == 0:
        return "only workers read shards at the same time, and num_workers is 0"
    shards = spec.dataset.num_shards
    if shards >= spec.num_workers and shards % spec.num_workers == 0:
        return f"its {shards} shards give each of the {spec.num_workers} workers as many"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """How many shards there are afterwards: files say how they can be cut, tables can anywhere."""
    try:
        shards = int(spec.dataset.reshard().num_shards)
        if shards > spec.dataset.num_shards:
            return {"shards": shards, "pieces": 0}
        pieces = pieces_for(spec.dataset, spec.num_workers)
        if pieces:
            shards = int(in_pieces(spec.dataset, pieces).num_shards)
        return {"shards": shards, "pieces": pieces}
    except Exception as error:
        return {"refusal": f"reshard fails: {short(error)}"}


def apply(spec: LoaderSpec) -> LoaderSpec:
    return _hf_stream.with_stream(spec, spec.dataset.reshard(), ".reshard()")


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    before = spec.dataset.num_shards
    if not facts.get("refusal") and facts["shards"] <= before:
        which = "only shard" if before == 1 else f"{before} shards"
        facts = {"refusal": f"its {which} cannot be cut further: write more files, or Parquet with "
                 "more row groups"}  # fmt: skip
    raise_refusal(TOGGLE.name, facts)
    note = f"The stream has {facts['shards']} shards instead of {before}."
    made = _of_table(spec, facts) if facts["pieces"] else apply(spec)
    return made.changed(notes=(*spec.notes, note))


def _of_table(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    stream = in_pieces(spec.dataset, facts["pieces"])
    return spec.changed(dataset=stream, before=(*spec.before, _said(facts["shards"])))


def _said(shards: int) -> str:
    """Where a stream of a table was made is not known here: what to write there is said."""
    return (
        f"# where the stream is made: .to_iterable_dataset(num_shards={shards}), and then all that "
        "follows it"
    )


def code(spec: LoaderSpec) -> str:
    # Nothing is read for it: cutting files into shards may have to look into them.
    if pieces := pieces_for(spec.dataset, spec.num_workers):
        return _said(pieces * spec.dataset.num_shards)
    return code_of(spec, _hf_stream.with_stream(spec, spec.dataset, ".reshard()"))


TOGGLE = Toggle(
    name="hf_reshard",
    title="Cut the stream into more shards (reshard)",
    effect="A shard is read by one worker: files are cut at their row groups, and tables between "
    "rows, so that all workers have something to read, and about as much.",
    cost="Each sample still comes once an epoch, but in another order. Call it before shuffle. "
    "Only tables and some kinds of files (Parquet) can be cut.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=88,
)
