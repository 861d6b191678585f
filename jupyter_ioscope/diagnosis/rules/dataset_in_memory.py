"""The whole data set is copied into memory before the first batch."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import Frames, HfFacts, hf_facts, name_of
from jupyter_ioscope.diagnosis.memory_facts import tree_growth_bytes
from jupyter_ioscope.diagnosis.rules import _hf
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, seconds

# A smaller table is read faster than one notices.
LEAST_BYTES = 32_000_000
# From this part of the machine's memory on, keeping it is the harm, however fast it was loaded.
MUCH = 0.25
_LOADS = (
    "load_from_disk", "load_dataset", "from_file", "from_buffer", "read_table", "from_parquet",
    "from_csv", "from_json", "_in_memory_arrow_table_from_file", "from_dict", "from_list",
    "from_pandas", "concat_tables", "as_dataset", "_as_dataset", "from_polars",
)  # fmt: skip


def judge(facts: Facts) -> Finding | None:
    """A table without a file behind it: the part of the cell that loading it took, and what the
    process grew by."""
    known = hf_facts(facts)
    size = known.number("data_bytes") if known else -1
    if known is None or not known.says("in_memory") or size < LEAST_BYTES or not facts.batches:
        return None
    load_ns, seen = _loading_ns(facts, known)
    grown = tree_growth_bytes(facts.profile) or 0.0
    memory = facts.profile.machine.memory_bytes
    return _hf.of_cell(
        known,
        load_ns,
        0.1 * load_ns if seen else 0.3 * load_ns,
        cause="dataset_in_memory",
        resource="memory",
        title=f"The whole data set ({bytes_text(size)}) is copied into memory",
        evidence=(
            f"Its table of {known.number('rows'):,} rows has no file behind it: "
            f"{bytes_text(size)} stay in memory, {percent(size / memory)} of this machine's."
            if memory
            else "",
            f"The process grew by {bytes_text(grown)}." if grown > 0 else "",
            f"Loading took about {seconds(load_ns / 1e9)} of {seconds(known.whole_ns / 1e9)}.",
            _read_line(facts),
        ),
        advice="Leave the table memory-mapped, which is the default: no keep_in_memory=True, and "
        "load_from_disk or load_dataset instead of from_dict or from_pandas (save_to_disk it "
        "once). Then only what is touched is read.",
        toggles=("hf_memory_mapped",),
        refines=("first_batch_setup",),
        harm="memory" if memory and size > MUCH * memory else "",
    )


def _loading_ns(facts: Facts, known: HfFacts) -> tuple[float, bool]:
    """(time spent loading before the loop, whether that was seen). Without samples: what passed
    before the loop and was no transform."""
    before_ns = float(facts.before_ns)
    start = facts.loop.start_ns
    for row in known.transforms:
        if row.start_ns < start:
            before_ns -= min(row.end_ns, start) - row.start_ns
    before_ns = max(0.0, before_ns)
    stacks = facts.profile.stacks
    rows = [row for row in stacks.stacks if row.role == "consumer"] if stacks else []
    total = sum(row.count for row in rows)
    if not total or stacks is None:
        return before_ns, False
    loads = sum(
        row.count
        for row in rows
        if _loading([stacks.frames[i] for i in row.frames if 0 <= i < len(stacks.frames)])
    )
    return min(before_ns, loads / total * facts.profile.wall_ns), True


def _loading(frames: Frames) -> bool:
    names = [name_of(row) for row in frames if "/datasets/" in row.file.replace("\\", "/")]
    return any(name in _LOADS for name in names) and "_map_single" not in names


def _read_line(facts: Facts) -> str:
    """How little of it the loop looked at; empty where it is most."""
    rows = int(facts.loader.fact("rows") or 0)
    given = sum(row.samples for row in facts.batches if row.samples > 0)
    if not rows or given > 0.5 * rows:
        return ""
    return f"The loop read {given:,} of the {rows:,} rows."


RULE = Rule("dataset_in_memory", judge)
