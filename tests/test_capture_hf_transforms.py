"""The record of transforms of `datasets`: from the cache or why not, and no trace left."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.loaders import _hf_cache  # noqa: E402
from jupyter_ioscope.model.observed import (  # noqa: E402
    DONE_BEFORE,
    FIRST_RUN,
    MISS_BY_CHOICE,
    Transform,
)

pytestmark = [pytest.mark.timeout(240), pytest.mark.beside]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_caching()


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """A dataset with files behind it: 300 rows, two columns."""
    made = datasets.Dataset.from_dict({"x": list(range(300)), "y": [str(i) for i in range(300)]})
    made.save_to_disk(tmp_path / "data")
    return datasets.load_from_disk(tmp_path / "data")


def recorded(work: Any) -> tuple[Transform, ...]:
    with profile(stacks=False) as p:
        work()
    return p.profile.transforms


def add_one(row: dict[str, Any]) -> dict[str, Any]:
    return {"z": row["x"] + 1}


def add_ones(batch: dict[str, Any]) -> dict[str, Any]:
    return {"z": [value + 1 for value in batch["x"]]}


def odd(row: dict[str, Any]) -> bool:
    return bool(row["x"] % 2)


class Holder:
    """Holds something that cannot be pickled, two steps down."""

    def __init__(self) -> None:
        self.inner = {"source": (number for number in range(3))}

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"z": row["x"]}


def test_a_first_run_is_recorded_with_its_settings_and_the_second_comes_from_the_cache(
    rows: Any,
) -> None:
    first, second = recorded(lambda: (rows.map(add_one), rows.map(add_one)))
    assert (first.kind, first.function, first.rows, first.batched) == ("map", "add_one", 300, False)
    assert (first.cached, first.why_missed) == (False, FIRST_RUN)
    assert first.columns == ("x", "y")
    assert first.start_ns < first.end_ns <= second.start_ns
    assert (second.cached, second.why_missed) == (True, "")


def test_batches_and_processes_are_told(rows: Any) -> None:
    first, second = recorded(
        lambda: (rows.map(add_ones, batched=True, batch_size=64), rows.map(add_one, num_proc=2))
    )
    assert (first.batched, first.batch_size, first.num_proc) == (True, 64, 1)
    assert (second.batched, second.batch_size, second.num_proc) == (False, -1, 2)


def test_shards_of_several_processes_are_found_in_the_cache(rows: Any) -> None:
    first, second = recorded(lambda: [rows.map(add_one, num_proc=2) for _ in range(2)])
    assert (first.cached, second.cached) == (False, True)


def test_a_filter_is_one_record_with_the_users_function(rows: Any) -> None:
    (only,) = recorded(lambda: rows.filter(odd))
    assert (only.kind, only.function, only.batched) == ("filter", "odd", False)


def test_the_object_that_cannot_be_hashed_is_named(rows: Any) -> None:
    (only,) = recorded(lambda: rows.map(Holder()))
    assert not only.cached
    assert only.why_missed == "Holder.inner['source'] cannot be hashed: generator"


def test_what_comes_after_an_unhashable_transform_misses_because_of_it(rows: Any) -> None:
    found = recorded(lambda: rows.map(Holder()).remove_columns("y").map(add_one))
    assert found[1].why_missed == "its input comes from Holder, which cannot be hashed"


def test_after_a_shuffle_without_a_seed_nothing_hits(rows: Any) -> None:
    found = recorded(lambda: (rows.shuffle().map(add_one), rows.shuffle(seed=3).map(add_one)))
    maps = [row for row in found if row.kind == "map"]
    assert "shuffle without a seed" in maps[0].why_missed
    assert "seed" not in maps[1].why_missed


def test_without_a_cache_the_users_choice_is_the_reason(rows: Any) -> None:
    datasets.disable_caching()
    first, second = recorded(lambda: [rows.map(add_ones, batched=True) for _ in range(2)])
    assert first.why_missed == f"{MISS_BY_CHOICE}caching is disabled"
    assert second.why_missed == first.why_missed + DONE_BEFORE


def test_a_dataset_made_in_memory_has_no_cache() -> None:
    made = datasets.Dataset.from_dict({"x": [1, 2, 3]})
    (only,) = recorded(lambda: made.map(add_one))
    assert only.why_missed.startswith(MISS_BY_CHOICE)
    assert "in memory" in only.why_missed


def test_an_object_that_changed_since_the_last_run_is_named(rows: Any) -> None:
    def run(state: dict[str, int]) -> Any:
        return rows.map(lambda row: {"z": row["x"] + state["seen"]})

    _, second = recorded(lambda: (run({"seen": 1}), run({"seen": 2})))
    assert second.why_missed == "state (dict) has another hash than the last time"


class Named:
    """A function with a setting."""

    def __init__(self, setting: object) -> None:
        self.setting = setting

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"z": row["x"]}


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("run-4f1c09d2", "run-90b2aa17", "setting (str) has another hash each time"),
        (time.time(), time.time() + 60, "setting (float) has another hash each time"),
        ({"seen": 1}, {"seen": 2}, "setting (dict) has another hash each time"),
        ("lower", "upper", FIRST_RUN),
        (0.5, 0.25, FIRST_RUN),
    ],
    ids=["a name of a run", "a time", "an object", "a setting", "a number"],
)
def test_an_equal_result_of_an_earlier_process_is_told_with_what_is_new_each_time(
    rows: Any, monkeypatch: pytest.MonkeyPatch, first: object, second: object, told: str
) -> None:
    recorded(lambda: rows.map(Named(first)))
    monkeypatch.setattr(_hf_cache, "_last_runs", {})  # as another process would find it
    (found,) = recorded(lambda: rows.map(Named(second)))
    assert found.why_missed.endswith(told)
    assert ("an earlier result" in found.why_missed) == (told != FIRST_RUN)


def test_a_fingerprint_that_the_user_gives_is_honoured_and_recorded(rows: Any) -> None:
    first, second = recorded(
        lambda: [rows.map(add_one, new_fingerprint="abcdef0123") for _ in range(2)]
    )
    assert (first.cached, second.cached) == (False, True)
    assert first.end_ns > first.start_ns


def test_fingerprints_are_what_they_would_have_been(rows: Any) -> None:
    plain = rows.filter(odd).map(add_one).train_test_split(test_size=0.5, seed=1)
    with profile(stacks=False):
        watched = rows.filter(odd).map(add_one).train_test_split(test_size=0.5, seed=1)
    assert [part._fingerprint for part in plain.values()] == [
        part._fingerprint for part in watched.values()
    ]


def test_an_error_of_the_users_function_has_no_frame_of_ours_and_is_not_a_record(
    rows: Any,
) -> None:
    def broken(row: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError

    caught: list[BaseException] = []

    def work() -> None:
        try:
            rows.map(broken)
        except ZeroDivisionError as error:
            caught.append(error)
        rows.map(add_one)

    found = recorded(work)
    files = [frame.filename for frame in traceback.extract_tb(caught[0].__traceback__)]
    assert not [name for name in files if "jupyter_ioscope" in name]
    assert "add_one" in [row.function for row in found]


def test_the_library_is_put_back_and_holds_nothing_of_ours(rows: Any) -> None:
    import datasets.arrow_dataset as arrow
    import datasets.fingerprint as fingerprint

    names = ("update_fingerprint", "validate_fingerprint", "generate_random_fingerprint")
    before = [getattr(module, name) for module in (arrow, fingerprint) for name in names]
    recorded(lambda: rows.map(Holder()))
    assert before == [getattr(module, name) for module in (arrow, fingerprint) for name in names]
    gc.collect()
    assert not [item for item in gc.get_objects() if type(item) is Holder]
