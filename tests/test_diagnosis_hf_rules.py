"""Causes in Hugging Face datasets, and the healthy loaders in which each stays silent."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.observed import DONE_BEFORE, MISS_BY_CHOICE
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack, ThreadReadings
from tests.builders import profile, without
from tests.hf_values import (
    ARRAYS,
    COLUMN,
    DECODE,
    GATHER,
    LISTS,
    MAP,
    MAP_OWN,
    MAPPED,
    MEMORY,
    NESTED,
    OBJECTS,
    OWN,
    PICTURES,
    RESIZE,
    SITE,
    after_transform,
    causes,
    first,
    of_dataset,
)
from tests.late_first_fetch import with_late_first_fetch
from tests.simulator import PID, START_NS

BUSY = profile(0, fetch_ms=20, cpu_fraction=1.0, step_ms=1)


# -- rows -----------------------------------------------------------------------------------------


def test_looking_rows_up_through_a_mapping_is_the_cause_where_it_takes_the_time() -> None:
    found = first(of_dataset(BUSY, MAPPED, (GATHER, 60), (OBJECTS, 40)))
    assert found.cause == "hf_indices_mapping"
    assert 0.5 < found.share < 0.9
    assert "decode_cpu" in found.refines


def test_advice_counts_the_passes_over_the_data() -> None:
    once = first(of_dataset(BUSY, MAPPED, (GATHER, 60), (OBJECTS, 40)))
    many = profile(0, fetch_ms=20, cpu_fraction=1.0, step_ms=1, epochs=8, batches=20)
    often = first(of_dataset(many, MAPPED, (GATHER, 60), (OBJECTS, 40)))
    assert "to_iterable_dataset" in once.advice
    assert once.advice.startswith("For one or two passes a copy (flatten_indices) costs as much")
    assert often.advice.startswith("Write the new order out once")


def test_a_mapping_is_no_cause_where_the_users_code_takes_the_time() -> None:
    value = of_dataset(BUSY, MAPPED, (GATHER, 2), (OWN, 98), library="torch")
    assert "hf_indices_mapping" not in causes(value)


def test_without_a_mapping_gathering_rows_is_no_such_cause() -> None:
    value = of_dataset(BUSY, {**MAPPED, "indices_mapping": "no"}, (GATHER, 60), (OBJECTS, 40))
    assert "hf_indices_mapping" not in causes(value)


def test_columns_asked_for_first_are_found_also_in_workers() -> None:
    busy = profile(2, fetch_ms=20, cpu_fraction=1.0, step_ms=1)
    for value in (BUSY, busy):
        facts = {"kind": "Dataset", "format": "torch", "wrapped": "yes"}
        found = first(of_dataset(value, facts, (COLUMN, 80), (OWN, 20), library="torch"))
        assert found.cause == "hf_column_access"
        assert "select_columns" in found.advice


def test_a_column_read_now_and_then_is_no_cause() -> None:
    facts = {"kind": "Dataset", "format": "torch", "wrapped": "yes"}
    value = of_dataset(BUSY, facts, (COLUMN, 3), (OWN, 97), library="torch")
    assert "hf_column_access" not in causes(value)


def test_nested_lists_as_arrays_are_the_cause() -> None:
    found = first(of_dataset(BUSY, NESTED, (ARRAYS, 90), (GATHER, 10)))
    assert found.cause == "hf_nested_list_features"
    assert "Array2D" in found.advice


@pytest.mark.parametrize("changed", [{"nested_lists": ""}, {"inner_lists_per_row": "2"}])
def test_flat_or_few_lists_are_not(changed: dict[str, str]) -> None:
    value = of_dataset(BUSY, {**NESTED, **changed}, (ARRAYS, 90), (GATHER, 10))
    assert "hf_nested_list_features" not in causes(value)


def test_long_lists_without_a_format_are_python_objects() -> None:
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, step_ms=0.2, batch_bytes=8 * 32_000)
    collate = (Frame("default_collate", f"{SITE}/torch/utils/data/_utils/collate.py", 9), *OWN[1:])
    found = first(of_dataset(value, LISTS, (OBJECTS, 30), (collate, 70), library="torch"))
    assert found.cause == "hf_python_object_rows"
    assert "with_format" in found.advice


@pytest.mark.parametrize("changed", [{"values_per_row": "20"}, {"format": "torch"}])
def test_short_lists_or_a_format_are_not(changed: dict[str, str]) -> None:
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, step_ms=0.2, batch_bytes=8 * 32_000)
    value = of_dataset(value, {**LISTS, **changed}, (OBJECTS, 30), (OWN, 70), library="torch")
    assert "hf_python_object_rows" not in causes(value)


def stream_of_lists(**changed: str) -> Profile:
    """Rows of a stream, which does not tell how long its lists are, joined into tensors."""
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, step_ms=0.2, batch_bytes=8 * 32_000)
    joined = (Frame("default_collate", f"{SITE}/torch/utils/data/_utils/collate.py", 9),)
    facts = {"kind": "IterableDataset", "stream": "Arrow", "format": "python", "lists": "signal"}
    facts = {**facts, "wrapped": "no", **changed}
    return of_dataset(value, facts, (OBJECTS, 30), (joined, 70), library="torch", stream=True)


def test_how_long_the_lists_of_a_stream_are_is_told_by_the_joined_batch() -> None:
    found = first(stream_of_lists())
    assert found.cause == "hf_python_object_rows"
    assert "at least 4,000 Python objects" in found.evidence[0]


@pytest.mark.parametrize(
    "changed", [{"lists": ""}, {"strings": "text"}, {"stream": "Mapped < Arrow"}]
)
def test_a_batch_that_may_hold_something_else_does_not_tell(changed: dict[str, str]) -> None:
    assert "hf_python_object_rows" not in causes(stream_of_lists(**changed))


def test_decoding_that_no_batch_holds_is_unused() -> None:
    value = profile(0, fetch_ms=40, cpu_fraction=1.0, step_ms=1, batch_bytes=8 * 500)
    found = first(of_dataset(value, PICTURES, (DECODE, 90), (OWN, 10), library="torch"))
    assert found.cause == "hf_unused_decoded_column"
    assert found.advice.startswith("If you do not use “photo”")


def test_pictures_that_reach_the_batch_or_are_worked_on_are_used() -> None:
    large = profile(0, fetch_ms=40, cpu_fraction=1.0, step_ms=1, batch_bytes=8 * 150_000)
    small = profile(0, fetch_ms=40, cpu_fraction=1.0, step_ms=1, batch_bytes=8 * 500)
    for value, other in ((large, OWN), (small, RESIZE)):
        value = of_dataset(value, PICTURES, (DECODE, 90), (other, 10), library="torch")
        assert "hf_unused_decoded_column" not in causes(value)


# -- transforms -----------------------------------------------------------------------------------


def test_a_row_wise_map_of_cheap_calls_should_be_batched() -> None:
    found = first(after_transform())
    assert found.cause == "hf_map_not_batched"
    assert found.resource == "start_up"
    assert 0.5 < found.share < 0.9


def test_stacks_say_how_much_of_a_map_is_the_library() -> None:
    much = first(after_transform((MAP, 90), (MAP_OWN, 10)))
    little = causes(after_transform((MAP, 4), (MAP_OWN, 96)))
    assert much.share > 0.7
    assert "hf_map_not_batched" not in little


def test_batched_maps_and_heavy_functions_are_fine_the_first_time() -> None:
    for change in ({"batched": True}, {"rows": 1_000}):
        found = causes(after_transform(**change))
        assert not {"hf_map_not_batched", "hf_map_cache_miss", "first_batch_setup"} & set(found)


def test_what_comes_from_the_cache_is_no_trouble() -> None:
    value = after_transform(cached=True, why_missed="", end_ns=START_NS + 20_000_000)
    assert not {"hf_map_not_batched", "hf_map_cache_miss"} & set(causes(value))


def test_an_unhashable_function_is_the_cause_even_if_it_works_row_by_row() -> None:
    found = first(after_transform(why_missed="Clean.client cannot be hashed: Client"))
    assert found.cause == "hf_map_cache_miss"
    assert any("Clean.client cannot be hashed" in line for line in found.evidence)
    assert "pickled" in found.advice


def test_a_result_nobody_keeps_is_a_miss_only_when_done_again() -> None:
    once = causes(after_transform(batched=True, why_missed=f"{MISS_BY_CHOICE}caching is disabled"))
    again = f"{MISS_BY_CHOICE}caching is disabled{DONE_BEFORE}"
    assert "hf_map_cache_miss" not in once
    assert first(after_transform(batched=True, why_missed=again)).cause == "hf_map_cache_miss"


def test_processes_for_little_work_cost_more_than_they_bring() -> None:
    end_ns = START_NS + 1_510_000_000
    value = after_transform(num_proc=8, cpu_ns=500_000_000, rows=3_000, end_ns=end_ns)
    found = next(row for row in diagnose(value).findings if row.cause.startswith("hf_"))
    assert found.cause == "hf_map_numproc_overhead"
    assert "batched=True" in found.advice


def long_inside_a_map_of_processes() -> Profile:
    """Four processes were seen in the user's function for far longer than they ran."""
    inside = (*MAP, Frame("ask", "In [4]", 3, 4))
    value = after_transform((OWN, 75), num_proc=4, cpu_ns=500_000_000)
    known = value.stacks
    assert known is not None
    frames = (*known.frames, *inside)
    indices = tuple(range(len(known.frames), len(frames)))
    row = Stack("other", -1, PID + 50, "MainThread", indices, 260)
    return without(
        value, stacks=dataclasses.replace(known, frames=frames, stacks=(*known.stacks, row))
    )


def test_processes_with_much_work_or_long_waits_are_fine() -> None:
    busy = after_transform(num_proc=2, cpu_ns=5_500_000_000)
    for value in (busy, long_inside_a_map_of_processes()):
        assert "hf_map_numproc_overhead" not in causes(value)


def test_processes_that_stood_in_line_for_a_core_did_not_wait_for_anything_else() -> None:
    value = long_inside_a_map_of_processes()
    ends = value.start_ns, value.end_ns
    line = ThreadReadings(
        PID + 50, PID + 50, "MainThread", "other", -1, *ends, 100_000_000, 3_000_000_000, 0
    )
    crowded = without(value, threads=(*value.threads, line))
    assert "hf_map_numproc_overhead" in causes(crowded)


# -- memory and streams ---------------------------------------------------------------------------


def loaded(facts: dict[str, str]) -> Profile:
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, before_ms=3_000, batches=50, step_ms=8)
    load = (Frame("load_from_disk", f"{SITE}/datasets/load.py", 1745),)
    return of_dataset(value, facts, (load, 75), (ARRAYS, 10))


def test_a_table_copied_into_memory_is_the_cause_of_a_late_start() -> None:
    found = first(loaded(MEMORY))
    assert (found.cause, found.resource) == ("dataset_in_memory", "memory")
    assert not found.harm
    assert first(loaded({**MEMORY, "data_bytes": str(9 * 10**9)})).harm == "memory"


@pytest.mark.parametrize("changed", [{"in_memory": "no"}, {"data_bytes": "2000000"}])
def test_mapped_or_small_tables_are_not(changed: dict[str, str]) -> None:
    assert "dataset_in_memory" not in causes(loaded({**MEMORY, **changed}))


def filled(size: int, *, left: bool = True, first_ms: float = 2_000) -> Profile:
    """A stream whose first fetch took `first_ms` longer than all others, which took 4 ms."""
    value = profile(0, fetch_ms=4, cpu_fraction=1.0, step_ms=4, batches=100)
    value = with_late_first_fetch(value, first_ms, left=left)
    facts = {"kind": "IterableDataset", "shuffle_buffer": str(size), "wrapped": "no"}
    return of_dataset(value, facts, (OBJECTS, 20), stream=True)


def test_a_buffer_that_is_filled_first_is_the_cause() -> None:
    found = first(filled(5_000))
    assert (found.cause, found.resource) == ("shuffle_buffer_fill", "start_up")
    assert found.share > 0.5


def test_a_small_buffer_or_a_stream_read_to_its_end_is_not() -> None:
    for value in (filled(50, first_ms=5), filled(5_000, left=False)):
        assert "shuffle_buffer_fill" not in causes(value)


def few_shards(busy: int, states: dict[str, float]) -> Profile:
    """4 workers of a stream, of which `busy` made all batches."""
    value = profile(busy, fetch_ms=60, states=states, step_ms=1, batches=60)
    facts = {"kind": "IterableDataset", "shards": str(busy), "wrapped": "no"}
    value = of_dataset(value, facts, library="torch", stream=True)
    info = dataclasses.replace(value.loaders[0], num_workers=4)
    return without(value, loaders=(info,))


def test_workers_without_a_shard_are_the_cause() -> None:
    value = few_shards(1, {"cpu": 0.05, "network": 0.95})
    found = first(value)
    assert found.cause == "shards_fewer_than_workers"
    assert 0.5 < found.share < 0.8
    assert found.title == (
        "The stream is one shard, so one worker does all the work and the other 3 stand idle"
    )
    assert "num_workers=1 does the same" in found.advice
    assert found.toggles == ("hf_reshard",)  # fewer workers would be no cure


def test_a_transform_that_is_not_kept_by_choice_is_told_where_nothing_else_is_found() -> None:
    value = after_transform(batched=True, why_missed=f"{MISS_BY_CHOICE}caching is disabled")
    text = diagnose(value).detail.replace("\xa0", " ")
    assert "map(tokenize) took 3.0 s, and will again in the next run: caching is disabled." in text
    assert "again in the next run" not in diagnose(after_transform(batched=True)).detail


def test_a_filter_is_told_to_name_the_columns_it_looks_at() -> None:
    assert "input_columns" in first(after_transform(kind="filter", cpu_ns=500_000_000)).advice
    assert "input_columns" not in first(after_transform()).advice


def test_of_several_shards_the_workers_without_one_are_counted() -> None:
    title = first(few_shards(2, {"cpu": 0.05, "network": 0.95})).title
    assert title == "2 of the 4 workers get nothing to do"


@pytest.mark.parametrize(("shards", "told"), [(1, True), (64, False)])
def test_a_loop_that_waits_for_a_stream_of_few_shards_is_told_to_divide_it(
    shards: int, told: bool
) -> None:
    value = profile(0, fetch_ms=60, states={"cpu": 0.05, "sleep": 0.95}, step_ms=1, batches=40)
    facts = {"kind": "IterableDataset", "shards": str(shards), "wrapped": "no"}
    found = first(of_dataset(value, facts, library="torch", stream=True))
    assert found.cause == "no_workers_latency_bound"
    assert ("as many shards" in found.advice) == told


def test_as_many_shards_as_workers_are_not() -> None:
    assert "shards_fewer_than_workers" not in causes(few_shards(4, {"cpu": 0.05, "network": 0.95}))
