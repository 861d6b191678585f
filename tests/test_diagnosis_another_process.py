"""Fetches that wait for another process: what for is known, and whether it computes meanwhile."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from tests import builders

WAITING = {"cpu": 0.05, "process": 0.95}


def waiting(workers: int, children_cores: float = 0.0) -> Profile:
    """Fetches that wait for other processes, which keep so many cores busy."""
    value = builders.profile(workers, states=WAITING, batches=150, step_ms=0.5)
    name = "tree_cpu_ns"
    tree = value.series[name]
    more = (children_cores * (time_ns - tree.time_ns[0]) for time_ns in tree.time_ns)
    values = tuple(used + extra for used, extra in zip(tree.values, more, strict=True))
    series = {**value.series, name: replace(tree, values=values)}
    return builders.without(value, series=MappingProxyType(series))


def first(value: Profile) -> Finding:
    return diagnose(value).findings[0]


def test_a_loop_that_waits_for_another_process_could_wait_for_several() -> None:
    found = first(waiting(0))
    assert (found.cause, found.resource) == ("no_workers_latency_bound", "process")
    assert "waiting for another process" in found.evidence[0]


def test_workers_that_wait_for_another_process_are_not_blocked_for_an_unknown_reason() -> None:
    found = first(waiting(2))
    assert (found.cause, found.resource) == ("blocked_unseen", "process")
    assert found.title == "Workers wait for another process"
    assert "Start a program once" in found.advice


@pytest.mark.parametrize(
    ("workers", "cause"), [(0, "no_workers_cpu_bound"), (2, "decode_cpu")], ids=["alone", "two"]
)
def test_where_it_computes_it_is_work_on_the_cores(workers: int, cause: str) -> None:
    found = first(waiting(workers, children_cores=float(max(1, workers))))
    assert (found.cause, found.resource) == (cause, "process")
    assert "computed for 100 % of that time" in " ".join(found.evidence).replace("\u00a0", " ")
    assert "num_workers=4" in found.advice


def test_a_child_that_hardly_computes_is_waited_for() -> None:
    assert first(waiting(0, children_cores=0.2)).cause == "no_workers_latency_bound"
