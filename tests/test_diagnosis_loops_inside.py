"""Loops inside one another: a validation loop in the middle of training is its own loader's."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.loops_inside import loops_inside, own_times_ns
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Fetch
from tests import builders

S = 1_000_000_000


def validating(start_ms: float, step_ms: float = 900.0, passes: int = 8) -> Profile:
    """Training without workers, and in each step a pass over another loader with two workers that
    are started again. `start_ms` is how long they take to start."""
    outer = builders.profile(0, fetch_ms=4, step_ms=step_ms, batches=passes)
    inner = builders.profile(2, fetch_ms=4, step_ms=2, start_ms=start_ms, batches=6)
    first_ns = inner.epochs[0].iter_start_ns
    info = dataclasses.replace(inner.loaders[0], loader=1, dataset_class="Held")
    value = builders.without(outer, loaders=(*outer.loaders, info), threads=(), stacks=None)
    for number, step in enumerate(outer.batches, 1):
        value = _with_pass(value, inner, number, step.wait_end_ns + 5_000_000 - first_ns)
    return value


def _with_pass(value: Profile, inner: Profile, number: int, later_ns: int) -> Profile:
    epoch = inner.epochs[0]
    assert epoch.end_ns is not None
    moved = epoch._replace(
        epoch=number,
        loader=1,
        iter_start_ns=epoch.iter_start_ns + later_ns,
        iter_end_ns=epoch.iter_end_ns + later_ns,
        end_ns=epoch.end_ns + later_ns,
    )
    batches: list[Batch] = [
        row._replace(
            batch=1_000 * number + row.batch,
            epoch=number,
            loader=1,
            wait_start_ns=row.wait_start_ns + later_ns,
            wait_end_ns=row.wait_end_ns + later_ns,
            step_end_ns=row.step_end_ns + later_ns,
        )
        for row in inner.batches
    ]
    fetches: list[Fetch] = [
        row._replace(
            epoch=number,
            loader=1,
            pid=row.pid + 100 * number,
            start_ns=row.start_ns + later_ns,
            end_ns=row.end_ns + later_ns,
        )
        for row in inner.fetches
    ]
    return builders.without(
        value,
        epochs=(*value.epochs, moved),
        batches=(*value.batches, *batches),
        fetches=(*value.fetches, *fetches),
    )


def test_a_loop_inside_a_step_is_no_part_of_the_step() -> None:
    value = validating(start_ms=600)
    spent = own_times_ns(value)
    assert spent[1] > 8 * 0.6 * S
    outer_ns = sum(row.step_end_ns - row.wait_start_ns for row in value.batches if not row.loader)
    assert spent[0] + spent[1] < 1.1 * outer_ns, "nothing is counted twice"
    assert Facts(value).loader.dataset_class == "Held"


def test_the_step_of_the_outer_loop_is_told_without_it() -> None:
    value = validating(start_ms=300, step_ms=1500)
    facts = Facts(value)
    inner_ns = sum(row.time_ns for row in loops_inside(value))
    whole_ns = sum(row.step_ns for row in facts.batches)
    assert facts.step_s == pytest.approx((whole_ns - inner_ns) / 8 / S)
    assert facts.gain_step().share < whole_ns / facts.loop.wall_ns - 0.1


def test_loops_side_by_side_keep_their_own_time() -> None:
    value = builders.profile(2, batches=20)
    rows = value.batches
    both = builders.without(
        value,
        loaders=(*value.loaders, dataclasses.replace(value.loaders[0], loader=1)),
        epochs=(*value.epochs, value.epochs[0]._replace(epoch=1, loader=1)),
        batches=(*rows, *(row._replace(loader=1, epoch=1, batch=99 + row.batch) for row in rows)),
    )
    spent = own_times_ns(both)
    assert spent[0] == spent[1]


def test_workers_of_an_inner_loop_that_start_again_are_named() -> None:
    first = diagnose(validating(start_ms=600)).findings[0]
    assert first.cause == "worker_restart_per_epoch"
    assert "persistent_workers=True" in first.advice


def test_so_are_those_of_a_loader_that_is_not_the_main_one() -> None:
    value = validating(start_ms=300, step_ms=1500)
    assert Facts(value).loader.dataset_class == "Photos"
    first = diagnose(value).findings[0]
    assert first.cause == "worker_restart_per_epoch"
    assert "of the loader of Held" in first.evidence[0]


def test_quick_starts_of_an_inner_loop_are_no_trouble() -> None:
    causes = [row.cause for row in diagnose(validating(start_ms=5)).findings]
    assert "worker_restart_per_epoch" not in causes
