"""Rows read once with all their columns, instead of once for every column."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.held import held, why_none
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._hf_rows import RowsFirst, list_key
from jupyter_ioscope.trials.toggles._learn import first_batches, raise_refusal, short


def refuse(spec: LoaderSpec) -> str:
    if held(spec) is None:
        return why_none(spec)
    if getattr(loaded("datasets.arrow_dataset"), "Column", None) is None:
        return "this release of datasets reads a whole column at ds[name]: it came with 4.0"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """The columns that are asked for one by one, for the same rows."""
    from datasets import arrow_dataset

    column: Any = arrow_dataset.Column
    original = column.__getitem__
    groups: Counter[tuple[str, ...]] = Counter()
    last: dict[str, Any] = {"key": None, "names": []}

    @functools.wraps(original)
    def got(self: Any, key: Any) -> Any:
        wanted = list_key(key)
        if wanted is not None:
            mark = (id(self.source), wanted)
            if mark != last["key"]:
                groups[tuple(last["names"])] += 1
                last.update(key=mark, names=[])
            last["names"].append(self.column_name)
        return original(self, key)

    column.__getitem__ = got
    try:
        for _ in first_batches(spec):
            pass
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    groups[tuple(last["names"])] += 1
    several = Counter({names: n for names, n in groups.items() if len(set(names)) > 1})
    if not several:
        return {"refusal": "no rows were read column by column (ds[column][rows])"}
    return {"columns": list(dict.fromkeys(several.most_common(1)[0][0]))}


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which columns go together is only known after a look at what is read.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    columns = tuple(facts["columns"])
    return spec.changed(
        in_child=(*spec.in_child, RowsFirst(columns)),
        before=(*spec.before, *_code(list(columns)).splitlines()),
    )


def _code(columns: list[str]) -> str:
    return (
        "# in the dataset, once:\n"
        f"#     self.ds = self.ds.select_columns({columns!r})\n"
        "# and for each sample one read instead of ds[column][rows] for each column:\n"
        "#     batch = self.ds[rows]"
    )


def code(spec: LoaderSpec) -> str:
    found = held(spec)
    return _code(list(found.dataset.column_names)) if found is not None else ""


TOGGLE = Toggle(
    name="hf_rows_first",
    title="Read rows once, not once a column",
    effect="Where ds[column][rows] is asked for several columns of the same rows, the rows are "
    "read once with all of these columns.",
    cost="None, where all of the columns are needed.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=55,
    saves=("dataset_rows", "to_python", "tensor_build"),
)
