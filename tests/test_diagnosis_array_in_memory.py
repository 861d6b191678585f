"""Arrays that are read whole before the loop, and a loop that uses little of them."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame
from tests import builders
from tests.seen_stacks import CELL, NEXT, library, with_stacks
from tests.simulator import PID

MB = 1_000_000
SETUP = Frame("<module>", "In [7]", 1, 7)
LOAD = library("load", "numpy/lib/_npyio_impl.py", 488)
READ = library("read_array", "numpy/lib/_format_impl.py", 850)


def loaded(grown_mb: int = 600, batch_kb: int = 128, loading: int = 50, other: int = 0) -> Profile:
    """Two seconds before a quick loop of 100 batches, seen `loading` times inside np.load."""
    value = builders.profile(
        0, fetch_ms=2, step_ms=4, batches=100, before_ms=2_000, batch_bytes=batch_kb * 1_000
    )
    use = ProcessUse(PID, -1, value.start_ns, value.end_ns, *(0,) * 6, 100 * MB,
                     (100 + grown_mb) * MB, 8, 1024)  # fmt: skip
    rows = [
        ("consumer", -1, (SETUP, LOAD, READ), loading),
        ("consumer", -1, (SETUP,), other),
        ("consumer", -1, (CELL, NEXT), 15),
    ]
    return builders.without(with_stacks(value, [row for row in rows if row[3]]), processes=(use,))


def causes(value: Profile) -> list[str]:
    return [row.cause for row in diagnose(value).findings]


@pytest.mark.parametrize("other", [0, 25], ids=["reading", "and taking it apart"])
def test_an_array_of_which_little_is_used_is_told_to_be_mapped(other: int) -> None:
    value = loaded(loading=50 - other, other=other)
    first = diagnose(value).findings[0]
    assert (first.cause, first.resource) == ("dataset_in_memory", "memory")
    assert "mmap_mode='r'" in first.advice
    assert first.share == pytest.approx(2.0 / value.wall_s, abs=0.1)
    assert "first_batch_setup" not in causes(value)


@pytest.mark.parametrize(
    "changes",
    [{"batch_kb": 4_000}, {"grown_mb": 8}, {"loading": 0, "other": 50}],
    ids=["most of it is used", "little memory", "other work"],
)
def test_what_is_used_or_small_may_lie_in_memory(changes: dict[str, int]) -> None:
    assert "dataset_in_memory" not in causes(loaded(**changes))


def test_a_loop_that_was_left_may_have_used_the_rest() -> None:
    value = loaded()
    left = tuple(row._replace(end_ns=None) for row in value.epochs)
    unknown = dataclasses.replace(value.loaders[0], samples_total=None)
    assert "dataset_in_memory" not in causes(
        builders.without(value, epochs=left, loaders=(unknown,))
    )
    whole = dataclasses.replace(value.loaders[0], samples_total=100_000)
    assert "dataset_in_memory" not in causes(builders.without(value, loaders=(whole,)))
