"""The order of shuffled, filtered or selected rows written out once."""

from __future__ import annotations

import time
from typing import Any

from jupyter_ioscope.trials.held import held, hf_code, why_none, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _hf_copy
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short
from jupyter_ioscope.units import bytes_text, seconds


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if found.dataset._indices is None:
        return "its rows are read directly: it has no indices mapping"
    return _hf_copy.too_large(found.dataset)


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Write the rows in their order into the comparison's folder."""
    found = held(spec)
    assert found is not None  # `refuse` looked
    reason = _hf_copy.too_large(found.dataset, spec.folder)
    if reason:
        return {"refusal": reason}
    path = _hf_copy.file_in(spec.folder, "flat")
    started = time.monotonic()
    try:
        found.dataset.flatten_indices(cache_file_name=path)
    except Exception as error:
        return {"refusal": f"flatten_indices fails: {short(error)}"}
    return {"path": path, "seconds": time.monotonic() - started}


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Writing takes about an epoch: only a trial's child does it.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    found = held(spec)
    assert found is not None  # it was there when its rows were written
    flat = _hf_copy.opened(found.dataset, facts["path"], indices=False)
    note = (
        f"Writing the {len(flat):,} rows in order took {seconds(facts['seconds'])} "
        f"({bytes_text(_hf_copy.rows_bytes(flat))}); the ratio is that of the time after it."
    )
    return with_held(spec, found, flat, ".flatten_indices()").changed(notes=(*spec.notes, note))


def code(spec: LoaderSpec) -> str:
    return hf_code(spec, ".flatten_indices()")


TOGGLE = Toggle(
    name="hf_flatten_indices",
    title="Write shuffled rows out in order (flatten_indices)",
    effect="Rows lie in the file in the order in which they are read, so that a batch is one "
    "slice instead of a look-up of each row.",
    cost="About one epoch of reading and a file as large as the rows, once for each order: a "
    "dataset that is shuffled again every epoch pays it every epoch.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=52,
    saves=("dataset_rows",),
    direct=True,
)
