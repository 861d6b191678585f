"""Numbers come out of Arrow as Python objects, one by one."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, Frames, HfFacts, called, hf_facts, joined
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

# CPU for one number: out of Arrow as a Python object (measured 17 for small integers, 38 to 59 for
# floats), and from a list of those into a tensor (100 to 108; numpy 20).
VALUE_NS, CONVERT_NS = 25.0, 80.0
# Letting an object go: measured 15 to 20.
FREE_NS = 12.0
# Asking for arrays costs something as well, a row and a column of lists: measured 4 and 10 us.
ARRAY_NS, TENSOR_NS = 5_000.0, 12_000.0
# A delivered batch of this many bytes a number holds the numbers themselves, not Python objects.
_BYTES_A_NUMBER = 1.0
# What is seen where numbers come out of rows and into tensors: most of fetching.
_NUMBERS = ("tensor_build", "collate", "dataset_rows", "to_python", "convert")
_MOSTLY = 0.5


def judge(facts: Facts) -> Finding | None:
    """Long lists of numbers read without a format: making the objects, and joining them again."""
    known = hf_facts(facts)
    values = _values_per_row(known) if known else -1
    if known is None or known.format != "python" or values <= 0 or not facts.batches:
        return None
    each_ns = known.cpu_per_sample_ns
    convert = _joins_again(known, values)
    columns = facts.loader.fact("lists").count(",") + 1
    wasted_ns = values * (VALUE_NS + (CONVERT_NS if convert else 0.0))
    wasted_ns -= columns * (TENSOR_NS if convert else ARRAY_NS)
    if wasted_ns <= 0 or each_ns <= 0:
        return None
    expected = min(0.95, wasted_ns / each_ns)
    total = sum(count for _, count in known.fetch_stacks)
    seen = sum(count for row, count in known.fetch_stacks if _objects(row, convert))
    # The numbers above are of one machine: they set where to look, samples how much it is.
    part = joined(min(seen, 2 * expected * total), total, expected, 8.0)
    arrays = facts.loader.fact("nested_lists")
    return finding(
        facts,
        known.gain(part, 0.0 if convert else _freeing(known, values)),
        cause="hf_python_object_rows",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title="Numbers are read as Python objects, one by one",
        evidence=(
            f"The dataset has no format: a row becomes {_count(known)} {values:,} Python objects"
            + (", which are then joined into a tensor again." if convert else "."),
            f"A sample takes {seconds(each_ns / 1e9)} of CPU; "
            f"{percent(part.fraction)} of it makes "
            + ("and joins these objects." if convert else "these objects."),
            _words.where_line(facts),
        ),
        advice='Read arrays: ds = ds.with_format("torch") (or "numpy"), and join them with '
        "torch.stack."
        + (
            f" Store {arrays} as Array2D or Array3D: lists of lists are slow as arrays too."
            if arrays
            else ""
        ),
        where=facts.where(),
        toggles=("hf_format_torch", "hf_format_numpy", "fast_collate"),
        refines=(*GENERAL, "ipc_python_objects", "hf_nested_list_features"),
    )


def _count(known: HfFacts) -> str:
    return "about" if known.number("values_per_row") > 0 else "at least"


def _values_per_row(known: HfFacts) -> int:
    """Numbers in the lists of a row; -1 where that is not known. A stream does not tell: where its
    rows come from tables as they are, they are what the joined batch holds, eight bytes each at
    most."""
    loader = known.facts.loader
    told = known.number("values_per_row")
    as_they_are = loader.fact("stream") and "Mapped" not in loader.fact("stream")
    others = ("decoded", "fixed_arrays", "nested_lists", "strings")
    if told > 0 or not as_they_are or not loader.fact("lists"):
        return told
    if loader.library != "torch" or any(loader.fact(name) for name in others):
        return told
    if known.facts.work.fraction(*_NUMBERS)[0] < _MOSTLY:
        return told
    rows = [row for row in known.facts.fetches if row.samples > 0]
    samples = sum(row.samples for row in rows)
    return round(sum(row.batch_bytes for row in rows) / samples / 8) if samples else told


def _joins_again(known: HfFacts, values: int) -> bool:
    """Whether the delivered batch holds the numbers as tensors, told by its bytes."""
    rows = [row for row in known.facts.fetches if row.samples > 0]
    samples = sum(row.samples for row in rows)
    if known.facts.loader.library != "torch" or not samples:
        return False
    return sum(row.batch_bytes for row in rows) / samples >= _BYTES_A_NUMBER * values


def _freeing(known: HfFacts, values: int) -> float:
    """Part of the steps that lets the objects of a batch go: the loop gets them as they are."""
    rows = known.facts.batches
    steps_ns = sum(row.step_cpu_ns for row in rows)
    freed_ns = values * FREE_NS * sum(max(0, row.samples) for row in rows)
    return min(0.95, freed_ns / steps_ns) if steps_ns else 0.0


def _objects(frames: Frames, convert: bool) -> bool:
    if called(frames, "datasets/formatting/formatting.py", "extract_row", "extract_batch"):
        return True
    inner = frames[-1].file.replace("\\", "/")
    return convert and "/datasets/" not in inner and "/PIL/" not in inner


RULE = Rule("hf_python_rows", judge)
