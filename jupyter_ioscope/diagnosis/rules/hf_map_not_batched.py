"""A transform calls its function once a row: passing rows to and fro costs more than the work."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.rules import _hf
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import MISS_BY_CHOICE, Transform
from jupyter_ioscope.units import percent

# Below this part, what takes long is the function itself, row by row or not.
_LEAST_PART = 0.25
# A filter decodes all columns of a row before it asks the function.
_FILTER = (
    " Where it gets whole rows: name the columns it looks at (input_columns=[...]), so that no "
    "others are decoded."
)


def judge(facts: Facts) -> Finding | None:
    """Row-wise transforms, for what of them is the library's own work on each row."""
    known = HfFacts(facts)
    both = [(row, known.machinery(row)) for row in known.runs("map", "filter") if row_by_row(row)]
    both = [(row, part) for row, part in both if part.fraction >= _LEAST_PART]
    rows, parts = [row for row, _ in both], [part for _, part in both]
    costs = [part.fraction * _hf.took_ns(row) for part, row in zip(parts, rows, strict=True)]
    errors = [part.error * _hf.took_ns(row) for part, row in zip(parts, rows, strict=True)]
    if sum(costs) < _hf.LEAST_NS:
        return None
    at = max(range(len(rows)), key=lambda index: costs[index])
    row, part = rows[at], parts[at]
    return _hf.of_cell(
        known,
        sum(costs),
        together(*errors),
        cause="hf_map_not_batched",
        resource="start_up",
        title=f"{_hf.called(row)} works row by row",
        evidence=(
            _hf.took_line(row),
            f"{percent(part.fraction)} of that passes rows to the function and writes what it "
            "returns; in batches of 1,000 rows that is about 1 µs a row.",
            f"Its result is not kept: {row.why_missed.removeprefix(MISS_BY_CHOICE)}."
            if row.why_missed.startswith(MISS_BY_CHOICE)
            else "",
        ),
        advice=f"Use {row.kind}(batched=True) with a function over lists: it gets a dict of "
        "columns, 1,000 rows at a time, and returns a list a column. Tokenizers and numpy are also "
        "faster on a whole batch." + (_FILTER if row.kind == "filter" and row.columns[1:] else ""),
        refines=("first_batch_setup",),
        where=row.function,
    )


def row_by_row(row: Transform) -> bool:
    """Without processes: they divide the rows, and have a rule of their own."""
    return not row.batched and row.num_proc == 1 and _hf.took_ns(row) >= _hf.LEAST_NS


RULE = Rule("hf_map_not_batched", judge)
