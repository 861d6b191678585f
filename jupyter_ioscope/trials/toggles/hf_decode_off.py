"""Pictures and sound that nobody looks at stay encoded."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.held import held, why_none
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._hf_columns import decoded, digests, undecoded
from jupyter_ioscope.trials.toggles._learn import agree, raise_refusal, short


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if not decoded(found.dataset):
        return "no column of it is decoded when a row is read"
    if found.dataset.format["type"] == "custom":
        return "a transform of its own (set_transform) gets all columns"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """The columns whose decoded form reaches no batch: without it, batches are equal."""
    found = held(spec)
    assert found is not None  # `refuse` looked
    columns = decoded(found.dataset)
    try:
        wanted = digests(spec)
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    unused = [name for name in columns if _same_without(spec, [name], wanted)]
    if unused and (len(unused) == 1 or _same_without(spec, unused, wanted)):
        return {"columns": unused}
    return {"refusal": f"the decoded form of {', '.join(columns)} is used"}


def _same_without(spec: LoaderSpec, columns: list[str], wanted: list[str]) -> bool:
    try:
        return agree(wanted, digests(undecoded(spec, columns)))
    except Exception:  # the user's code used what is not there now
        return False


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which columns are used is only known after a look at samples.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    return undecoded(spec, facts["columns"])


def code(spec: LoaderSpec) -> str:
    found = held(spec)
    columns = decoded(found.dataset) if found is not None else []
    return code_of(spec, undecoded(spec, columns))


TOGGLE = Toggle(
    name="hf_decode_off",
    title="Leave unused pictures and sound encoded",
    effect="Columns of pictures, sound or video whose decoded form reaches no batch are read as "
    "the bytes or the path of their file.",
    cost="Code that looks at such a column in rare samples only then gets bytes. What is used is "
    "seen in the first batches.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=51,
    saves=("image_decode", "image_open", "audio_decode"),
)
