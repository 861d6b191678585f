"""A table that is read from its file where it is needed, instead of being kept in memory."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.held import held, hf_code, why_none, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _hf_copy
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short
from jupyter_ioscope.units import bytes_text

_FIRST = (
    "import datasets\n"
    "# load_dataset and load_from_disk map memory by themselves: leave keep_in_memory=True out.\n"
    "# For rows that were made in memory:\n"
    '{old}.save_to_disk("rows")'
)
_CALL = '=datasets.load_from_disk("rows")'


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if not in_memory(found.dataset):
        return "its table is memory-mapped already"
    return _hf_copy.too_large(found.dataset)


def in_memory(dataset: Any) -> bool:
    """Whether any part of the table lies in memory."""
    kind = getattr(loaded("datasets.table"), "InMemoryTable", None)
    table = dataset._data
    if kind is None:
        return False
    blocks = [block for row in getattr(table, "blocks", [[table]]) for block in row]
    return any(isinstance(block, kind) for block in blocks)


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Write the table into the comparison's folder: a table in memory knows no file."""
    found = held(spec)
    assert found is not None  # `refuse` looked
    reason = _hf_copy.too_large(found.dataset, spec.folder)
    if reason:
        return {"refusal": reason}
    path = _hf_copy.file_in(spec.folder, "mapped")
    try:
        _hf_copy.write_table(found.dataset, path)
    except Exception as error:
        return {"refusal": f"its table cannot be written: {short(error)}"}
    return {"path": path}


def apply(spec: LoaderSpec) -> LoaderSpec:
    # The file is written by a trial's child only.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    found = held(spec)
    assert found is not None  # it was there when its table was written
    mapped = _hf_copy.opened(found.dataset, facts["path"])
    note = (
        f"The table that need not stay in memory is {bytes_text(found.dataset.data.nbytes)}. "
        "Forked trials of both arms share this process's copy of it, so their peak memory does "
        "not show the saving."
    )
    return with_held(spec, found, mapped, _CALL, _FIRST).changed(notes=(*spec.notes, note))


def code(spec: LoaderSpec) -> str:
    return hf_code(spec, _CALL, _FIRST)


TOGGLE = Toggle(
    name="hf_memory_mapped",
    title="Memory-mapped instead of in memory",
    effect="The table stays in its file, and the system reads what is touched. Loading takes no "
    "time, memory is free for others, and workers are not sent a copy.",
    cost="First reads come from the disk: slower, where the file is not cached yet.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=40,
    direct=True,
)
