"""Which columns of a Hugging Face dataset a loader needs: found by looking and by trying."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.held import held, with_held
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggles._hf_watch import Reads
from jupyter_ioscope.trials.toggles._learn import agree, first_batches, short, values_of

_BATCHES = 8


def digests(spec: LoaderSpec) -> list[str]:
    """Of the values of the first samples. Raises whatever the user's code raises."""
    return values_of(spec, _BATCHES)


def learn_columns(spec: LoaderSpec) -> dict[str, Any]:
    """The columns that are read, proven by batches made without the others."""
    found = held(spec)
    assert found is not None  # `refuse` looked
    every = list(found.dataset.format["columns"])
    try:
        wanted = digests(spec)
        reads = Reads()
        reads.install()
        for _ in first_batches(spec, _BATCHES):
            pass
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    if reads.whole:
        return {
            "refusal": f"all {len(every)} columns of a row are passed on, and which of them the "
            "loop uses is not seen here: choose them with ds.select_columns([...])"
        }
    kept = [name for name in every if name in reads.names]
    if not kept:
        return {"refusal": "none of its columns was seen being read"}
    if kept == every:
        return {"refusal": f"all {len(every)} columns are read"}
    try:
        same = agree(wanted, digests(only(spec, kept)))
    except Exception as error:
        return {"refusal": f"without the other columns the loader fails: {short(error)}"}
    return {"columns": kept} if same else {"refusal": "without the others, batches are not equal"}


def only(spec: LoaderSpec, columns: list[str]) -> LoaderSpec:
    """The spec whose rows hold these columns and no others."""
    found = held(spec)
    if found is None:
        return spec
    call = f".select_columns({columns!r})"
    return with_held(spec, found, found.dataset.select_columns(columns), call)


def decoded(dataset: Any) -> list[str]:
    """Columns of pictures, sound or video that every row access decodes."""
    features, shown = dataset.features, dataset.format["columns"]
    return [name for name in shown if getattr(features[name], "decode", False) is True]


def undecoded(spec: LoaderSpec, columns: list[str]) -> LoaderSpec:
    """The spec whose rows hold the file's bytes or path in these columns."""
    import copy

    found = held(spec)
    if found is None:
        return spec
    new, call = found.dataset, ""
    for name in columns:
        feature = copy.copy(found.dataset.features[name])
        feature.decode = False
        new = new.cast_column(name, feature)
        call += f".cast_column({name!r}, datasets.{type(feature).__name__}(decode=False))"
    spec = spec.changed(before=(*spec.before, "import datasets"))
    return with_held(spec, found, new, call)
