"""A column is asked for first, and rows of it second: `ds["x"][rows]`."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, Frames, called, hf_facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import plus_minus

_ARROW = "datasets/arrow_dataset.py"
# What one query of rows for all columns saves of this. Measured with datasets 5.2: 0.61 for one
# column, 0.74 for three and four of them, up to 0.87 for single rows.
_SAVED = 0.7
_FEW_SAMPLES = 3


def judge(facts: Facts) -> Finding | None:
    """Fetches that were seen in the access to a column."""
    known = hf_facts(facts)
    if known is None or not known.fetch_stacks or not facts.batches:
        return None
    seen = known.seen(_by_column, 0.0)
    count = sum(n for frames, n in known.fetch_stacks if _by_column(frames))
    if count < min(_FEW_SAMPLES, sum(n for _, n in known.fetch_stacks)):
        return None
    total = sum(n for _, n in known.fetch_stacks)
    # Without the pull towards nothing: it is known that columns are asked for.
    part = known.seen(_by_column, count / total)
    return finding(
        facts,
        known.gain(part.times(_SAVED)),
        cause="hf_column_access",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title="Samples are read column by column, not row by row",
        evidence=(
            f"{plus_minus(100 * part.fraction, 100 * seen.error, 1)} % of the fetching was seen in "
            'ds["column"][rows]: each access makes a dataset of that column, looks the rows up '
            "again, or reads the whole column.",
            _words.per_sample_line(facts, "cpu"),
            _words.where_line(facts),
        ),
        advice="Ask for the rows once, with the columns that are needed: "
        'ds = ds.select_columns(["a", "b"]) before the loop, then ds[rows], and take the columns '
        "from what it returns.",
        where=facts.where(),
        toggles=("hf_rows_first", "hf_select_columns"),
        refines=GENERAL,
    )


def _by_column(frames: Frames) -> bool:
    if called(frames, _ARROW, "_fast_select_column"):
        return True
    in_column = any(
        frame.name.startswith("Column.") and frame.file.replace("\\", "/").endswith(_ARROW)
        for frame in frames
    )
    return in_column or called(frames, "datasets/formatting/formatting.py", "format_column")


RULE = Rule("hf_column_access", judge)
