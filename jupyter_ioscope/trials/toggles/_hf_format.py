"""Rows of a Hugging Face dataset in another form than Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.held import held, why_none, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._fast_tensor import FastTensors
from jupyter_ioscope.trials.toggles._learn import agree, raise_refusal, short, values_of

_STACK = (
    "# in the collate function: torch.stack(rows) instead of torch.tensor(rows), because the rows",
    "# are tensors or arrays now (numpy: torch.from_numpy(numpy.stack(rows)))",
)


def format_toggle(kind: str, title: str, effect: str, cost: str) -> Toggle:
    """The toggle `hf_format_<kind>`."""
    name = f"hf_format_{kind}"

    def refuse(spec: LoaderSpec) -> str:
        found = held(spec)
        if found is None:
            return why_none(spec)
        current = found.dataset.format["type"]
        if current == "custom":
            return "a transform of its own (set_transform) makes its rows"
        if current == kind:
            return f"its rows are in the format {kind!r} already"
        return "" if columns(found.dataset, kind) else "none of its columns holds numbers"

    def apply(spec: LoaderSpec) -> LoaderSpec:
        return _formatted(spec, kind)

    def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
        raise_refusal(name, facts)
        made = _formatted(spec, kind)
        if not facts["stack"]:
            return made
        changes = tuple(c for c in made.in_child if not isinstance(c, FastTensors))
        return made.changed(
            in_child=(*changes, FastTensors(tensors_too=True)), before=(*made.before, *_STACK)
        )

    return Toggle(
        name=name,
        title=title,
        effect=effect,
        cost=cost,
        refuse=refuse,
        apply=apply,
        code=lambda spec: code_of(spec, apply(spec)),
        learn=lambda spec: _learn(spec, lambda old: _formatted(old, kind)),
        apply_learnt=apply_learnt,
        order=54,
        saves=("to_python", "tensor_build", "dataset_rows"),
        direct=True,
        decides="the format of rows",
    )


def _learn(spec: LoaderSpec, formatted: Callable[[LoaderSpec], LoaderSpec]) -> dict[str, Any]:
    """Whether the code after the dataset can use the other form, and gives the same values: as it
    is, or with lists of rows stacked."""
    try:
        wanted = values_of(spec)
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    plain = formatted(spec)
    # Stacking is needed only where the rows as they are do not fit; patched last, it stays.
    stacking = plain.changed(in_child=(*spec.in_child, FastTensors(tensors_too=True)))
    reasons = []
    for stack, tried in ((False, plain), (True, stacking)):
        try:
            found = values_of(tried)
        except Exception as error:
            reasons.append(f"the code after the dataset cannot use such rows: {short(error)}")
            continue
        if agree(wanted, found):
            return {"stack": stack}
        reasons.append("the batches then hold other values")
    return {"refusal": reasons[-1]}


def columns(dataset: Any, kind: str) -> list[str]:
    """The columns that the format is good for: all in Arrow, else those made of numbers."""
    shown = dataset.format["columns"]
    return [name for name in shown if kind == "arrow" or numbers_in(dataset.features[name])]


def numbers_in(feature: Any) -> bool:
    """Whether a feature is a number, or lists or arrays of numbers."""
    inner = feature
    while getattr(inner, "feature", None) is not None:
        inner = inner.feature
    if isinstance(inner, list) and len(inner) == 1:
        return numbers_in(inner[0])
    kind = str(getattr(inner, "dtype", ""))
    return kind == "bool" or kind.startswith(("int", "uint", "float"))


def _formatted(spec: LoaderSpec, kind: str) -> LoaderSpec:
    found = held(spec)
    if found is None:
        return spec
    old = found.dataset
    chosen, shown = columns(old, kind), list(old.format["columns"])
    # Texts come out as they are in these formats; pictures would become tensors.
    easy = all(numbers_in(f) or getattr(f, "dtype", "") == "string" for f in old.features.values())
    if chosen == list(old.column_names) or (easy and len(shown) == len(old.column_names)):
        return with_held(spec, found, old.with_format(kind), f".with_format({kind!r})")
    rest = set(shown) - set(chosen)
    new = old.select_columns(shown) if rest and set(shown) != set(old.column_names) else old
    call = "" if new is old else f".select_columns({shown!r})"
    call += f".with_format({kind!r}, columns={chosen!r}"
    call += ", output_all_columns=True)" if rest else ")"
    made = new.with_format(kind, columns=chosen, output_all_columns=bool(rest))
    return with_held(spec, found, made, call)
