"""The flame graph of waiting: as wide as the time, states first, idleness left out."""

from __future__ import annotations

from functools import lru_cache

import pytest

from jupyter_ioscope.diagnosis.blocked_stacks import blocked_states
from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.bundle import LIMIT_BYTES, mime_bundle, saved_bytes
from jupyter_ioscope.views.flame import check_columns, check_tree, columns
from jupyter_ioscope.views.flame_states import all_trees
from jupyter_ioscope.views.flame_waits import STATE_LABELS, wait_trees
from jupyter_ioscope.views.shapes import MIME, IFlame
from tests import builders
from tests.test_diagnosis_blocked_stacks import FAULT, LABELS, ROWS, with_waits


@lru_cache(maxsize=1)
def waiting() -> Profile:
    profile = builders.profile(
        workers=2,
        states={"cpu": 0.3, "disk": 0.5, "page_fault": 0.2},
        fetch_ms=50.0,
        batches=300,
        step_ms=0.1,
    )
    waits = {
        ("disk", ROWS): (5.0, 2.0),
        ("disk", LABELS): (2.0, 1.0),
        ("page_fault", FAULT): (3.0, 1.0),
    }
    return with_waits(profile, waits)


def widths(flame: IFlame, depth: int) -> dict[str, float]:
    rows = zip(flame["name"], flame["depth"], flame["x0"], flame["x1"], strict=True)
    return {flame["names"][name]: x1 - x0 for name, at, x0, x1 in rows if at == depth}


def test_states_come_first_and_are_as_wide_as_their_time() -> None:
    profile = waiting()
    (tree,) = wait_trees(profile)
    check_tree(tree.root)
    flame = columns(tree)
    check_columns(flame)
    found = widths(flame, 1)
    states = blocked_states(profile, "worker", ("fetch",))
    for state in ("disk", "page_fault"):
        assert found[STATE_LABELS[state]] == pytest.approx(states[state][0], abs=0.01)


def test_below_a_state_functions_are_as_wide_as_they_waited_in_it() -> None:
    (tree,) = wait_trees(waiting())
    flame = columns(tree)
    inside = widths(flame, 3)
    assert inside["rows"] / (inside["rows"] + inside["labels"]) > 0.4
    assert "[read]" in flame["names"]
    assert "[page fault]" in flame["names"]


def test_the_root_says_time_and_not_samples_and_a_function_how_long_it_waits() -> None:
    (tree,) = wait_trees(waiting())
    flame = columns(tree)
    assert flame["samples"] == 0
    assert "of waiting, seen at" in flame["details"][0]
    assert "one wait lasts" in flame["details"][flame["names"].index("rows")]


def test_without_stacks_by_state_the_other_graphs_stay() -> None:
    profile = builders.profile(workers=2)
    assert wait_trees(profile) == []
    assert all_trees(profile)


def test_a_report_with_both_kinds_of_graphs_keeps_to_its_size() -> None:
    profile = waiting()
    bundle = mime_bundle(profile, diagnose(profile))
    keys = [flame["key"] for flame in bundle[MIME]["flames"]]
    assert "workers" in keys
    assert "states-workers" in keys
    assert saved_bytes(bundle) <= LIMIT_BYTES
