"""Items are rows of a data frame, got one by one."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    collecting,
    gain_of_work,
    ns_per_sample,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import nanoseconds

# Access to one row takes pandas 20 µs or more; less a sample means that it gets many at a time.
_ROW_NS = 5_000


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if rows came out of an array instead of a data frame."""
    if not facts.batches or not facts.work.fraction("table_rows")[0]:
        return None
    row_ns = ns_per_sample(facts, "table_rows")
    if row_ns < _ROW_NS:
        return None
    return finding(
        facts,
        gain_of_work(facts, "table_rows"),
        cause="pandas_row_access",
        resource=resource(facts),
        title="Rows are got from a data frame one by one",
        evidence=(
            seen_line(facts, "pandas", "table_rows"),
            f"That is {nanoseconds(row_ns)} a sample.",
            place_line(facts, "table_rows"),
        ),
        advice="Turn the columns into arrays or tensors once (df['x'].to_numpy(), "
        "torch.from_numpy) when the dataset is made, and index those: a row of an array takes "
        "below 1 µs. Rows of a whole batch at once (__getitems__, one df.iloc[list]) help too.",
        where=facts.work.where("table_rows"),
        refines=(*CPU_CAUSES, *collecting(facts)),
    )


RULE = Rule("pandas_row", judge)
