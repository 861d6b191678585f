"""Numbers of a Hugging Face dataset in the narrowest type that holds them all."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.held import held, why_none, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _hf_copy, _hf_narrow
from jupyter_ioscope.trials.toggles._hf_format import numbers_in
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short
from jupyter_ioscope.units import bytes_text


def refuse(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return why_none(spec)
    if not any(numbers_in(feature) for feature in found.dataset.features.values()):
        return "none of its columns holds numbers"
    return _hf_copy.too_large(found.dataset)


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Look at every value of every column of numbers, and write the narrower table."""
    found = held(spec)
    assert found is not None  # `refuse` looked
    reason = _hf_copy.too_large(found.dataset, spec.folder)
    if reason:
        return {"refusal": reason}
    casts, kept = {}, []
    try:
        rows = _in_order(found.dataset, spec.folder)
    except Exception as error:
        return {"refusal": f"its rows cannot be written in their order: {short(error)}"}
    table = rows.data
    for name, feature in rows.features.items():
        if not numbers_in(feature):
            continue
        row = _hf_narrow.narrowed(table.column(name))
        if row.new and _hf_narrow.with_type(feature, row.new) is not None:
            casts[name] = [row.old, row.new, row.exact, row.text]
        else:
            kept.append(f"{name}: {row.text if not row.new else 'it is no plain list'}")
    if not casts:
        return {"refusal": "no column can be narrowed (" + "; ".join(kept[:4]) + ")"}
    path = _hf_copy.file_in(spec.folder, "narrow")
    features = _features(rows, casts)
    try:
        _hf_copy.write_table(rows, path, features)
    except Exception as error:
        return {"refusal": f"the narrower table cannot be written: {short(error)}"}
    return {"path": path, "casts": casts, "kept": kept}


def _in_order(dataset: Any, folder: str) -> Any:
    """The rows that an indices mapping chooses, in their order and without it: they alone are
    looked at and written. `cast` would write the same rows, but fails on values of the others."""
    if dataset._indices is None:
        return dataset
    return dataset.flatten_indices(cache_file_name=_hf_copy.file_in(folder, "in-order"))


def _features(dataset: Any, casts: dict[str, Any]) -> Any:
    features = dataset.features.copy()
    for name, (_, new, _, _) in casts.items():
        features[name] = _hf_narrow.with_type(features[name], new)
    return features


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which types hold all values is only known after a look at all of them.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    found = held(spec)
    assert found is not None  # it was there when its values were looked at
    casts = facts["casts"]
    features = _features(found.dataset, casts)
    mapped = found.dataset._indices is not None
    narrow = _hf_copy.opened(found.dataset, facts["path"], features, indices=False)
    lines = ["import datasets", "features = {old}.features.copy()"]
    lines += [f"features[{name!r}] = {_expression(features[name])}" for name in casts]
    before, after = _hf_copy.rows_bytes(found.dataset), narrow.data.nbytes
    said = ", ".join(f"{name} {old} to {new} ({text})" for name, (old, new, _, text) in
                     casts.items())  # fmt: skip
    notes = [f"Narrowed, after a look at every value: {said}. {bytes_text(before)} of rows became "
             f"{bytes_text(after)} in the file."]  # fmt: skip
    if mapped:
        notes.append("The rows are also written in the order of their indices mapping: a part of "
                     "the gain is what hf_flatten_indices brings alone.")  # fmt: skip
    notes += ["Left as they are: " + "; ".join(facts["kept"]) + "."] if facts["kept"] else []
    if found.dataset.format["type"] in ("torch", "numpy"):
        notes.append("The dataset's format widens numbers again as it reads them: with_format(..., "
                     "dtype=...) keeps one narrow type.")  # fmt: skip
    made = with_held(spec, found, narrow, _call(found.dataset), "\n".join(lines))
    return made.changed(notes=(*spec.notes, *notes))


def _call(dataset: Any) -> str:
    flat = "" if dataset._indices is None else ".flatten_indices()"
    return f"{flat}.cast(features)"


def _expression(feature: Any) -> str:
    text = repr(feature)
    for name in ("LargeList(", "List(", "Value("):
        text = text.replace(name, f"datasets.{name}")
    return text.replace("datasets.Largedatasets.List(", "datasets.LargeList(")


def code(spec: LoaderSpec) -> str:
    found = held(spec)
    if found is None:
        return ""
    lines = (
        "import datasets\nfeatures = {old}.features.copy()\n"
        "# a trial finds the types: features['name'] = datasets.Value('int32')"
    )
    return code_of(spec, with_held(spec, found, found.dataset, _call(found.dataset), lines))


TOGGLE = Toggle(
    name="hf_narrow_casts",
    title="Narrower number types",
    effect="Whole numbers are kept as uint8, int16 or int32 and fractions as float32, where every "
    "value of the column fits: less to read, to keep in memory and to hand over.",
    cost="The table is written once more. Fractions keep 7 digits of 16. A column is left as it is "
    "where one value would overflow, vanish, or, being whole, change.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=53,
    direct=True,
)
