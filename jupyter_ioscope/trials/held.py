"""Finds the Hugging Face dataset that a loader reads, and puts another one in its place.

The user's objects stay as they are: what lies around the dataset is copied, shallow, with the new
dataset in place of the old one.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.code import code_of, dataset_name
from jupyter_ioscope.trials.spec import LoaderSpec

_DEEPEST = 3  # Subset of a wrapper of a dataset
_MOST_ATTRIBUTES = 200


class Held(NamedTuple):
    """`path`: attribute names from the loader's dataset to `dataset`; () when it is that one."""

    path: tuple[str, ...]
    dataset: Any


def held(spec: LoaderSpec) -> Held | None:
    """The one map-style Hugging Face dataset behind a spec; None when there is none or several."""
    kind = _kind()
    if kind is None:
        return None
    found = _search(spec.dataset, kind, (), set())
    return found[0] if len({id(one.dataset) for one in found}) == 1 else None


def why_none(spec: LoaderSpec) -> str:
    """A sentence for a spec without a single map-style Hugging Face dataset."""
    kind = _kind()
    if kind is None:
        return "no Hugging Face dataset is read: datasets is not imported by this program"
    if len(_search(spec.dataset, kind, (), set())) > 1:
        return "the dataset holds several Hugging Face datasets"
    streams = getattr(loaded("datasets"), "IterableDataset", None)
    read = spec.dataset.looped if spec.direct else spec.dataset
    if streams is not None and isinstance(read, streams):
        return "the Hugging Face dataset is streamed already"
    return "no Hugging Face dataset was found in the loader's dataset or its attributes"


def with_held(
    spec: LoaderSpec, found: Held, dataset: Any, call: str, first: str = ""
) -> LoaderSpec:
    """`spec` with `dataset` in place of the one that was found. `call` is how a user gets it:
    ".with_format('torch')" after the old one's name, or a whole expression that begins with
    "=". `first` is a line that comes before, with {old} for the old one."""
    name = dict(spec.written).get("dataset", dataset_name(spec))
    shown = _shown(spec, found.path)
    old = ".".join(["dataset" if shown else name, *shown])
    new = call.removeprefix("=") if call.startswith("=") else old + call
    lines = [f"dataset = {new}"]
    if shown:
        lines = ["import copy", f"dataset = copy.copy({name})", f"{old} = {new}"]
    if first:
        lines.insert(-1, first.replace("{old}", old))
    return spec.changed(
        dataset=replaced(spec.dataset, found.path, dataset),
        before=(*spec.before, *lines),
        written=(*(row for row in spec.written if row[0] != "dataset"), ("dataset", "dataset")),
    )


def _shown(spec: LoaderSpec, path: tuple[str, ...]) -> tuple[str, ...]:
    """The path as the user knows it: around a dataset that is iterated itself lies ours."""
    return path[1:] if spec.direct else path


def replaced(root: Any, path: tuple[str, ...], new: Any) -> Any:
    """A shallow copy of `root` with `new` at `path`."""
    if not path:
        return new
    made = copy.copy(root)
    vars(made)[path[0]] = replaced(vars(root)[path[0]], path[1:], new)
    return made


def formatted_like(dataset: Any, old: Any) -> Any:
    """`dataset` with the format of `old`."""
    form = old.format
    return dataset.with_format(
        form["type"],
        columns=form["columns"],
        output_all_columns=form["output_all_columns"],
        **form["format_kwargs"],
    )


def hf_code(spec: LoaderSpec, call: str, first: str = "") -> str:
    """The code for a change of the dataset that is known without a look at data."""
    found = held(spec)
    if found is None:
        return ""
    return code_of(spec, with_held(spec, found, found.dataset, call, first))


def _kind() -> Any:
    return getattr(loaded("datasets"), "Dataset", None)


def _search(value: Any, kind: Any, path: tuple[str, ...], seen: set[int]) -> list[Held]:
    if isinstance(value, kind):
        return [Held(path, value)]
    if id(value) in seen or len(path) >= _DEEPEST or isinstance(value, type):
        return []
    seen.add(id(value))
    own = getattr(value, "__dict__", None)
    if not isinstance(own, dict) or len(own) > _MOST_ATTRIBUTES:
        return []
    return [
        found
        for name, inner in list(own.items())
        for found in _search(inner, kind, (*path, name), seen)
    ]
