"""Only the columns of a Hugging Face dataset that are read."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.held import held, why_none
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._hf_columns import learn_columns, only
from jupyter_ioscope.trials.toggles._learn import raise_refusal


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if found.dataset.format["type"] == "custom":
        return "a transform of its own (set_transform) gets all columns"
    if len(found.dataset.format["columns"]) < 2:
        return "it has one column only"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which columns are read is only known after a look at samples.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    return only(spec, facts["columns"])


def code(spec: LoaderSpec) -> str:
    found = held(spec)
    names = list(found.dataset.format["columns"])[:2] if found is not None else []
    note = "# the columns that are read; a trial finds them:\n"
    return note + code_of(spec, only(spec, names))


TOGGLE = Toggle(
    name="hf_select_columns",
    title="Only the columns that are read",
    effect="Rows hold only the columns that the code after the dataset asks for: the others are "
    "neither read, nor converted, nor decoded.",
    cost="A column that is asked for in rare samples only is then missing, and the loader fails "
    "there. Which columns are read is seen in the first batches.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn_columns,
    apply_learnt=apply_learnt,
    order=50,
    saves=("image_decode", "image_open", "audio_decode", "dataset_rows", "to_python"),
    direct=False,
)
