"""All time by state: the states add up to the threads' wall time, running is the kernel's account,
and what was seen waiting does not count as running."""

from __future__ import annotations

import pytest

from jupyter_ioscope.views.flame import Tree, check_columns, check_tree, columns
from jupyter_ioscope.views.flame_states import IDLE, QUEUED, RUNNING, all_trees, state_trees
from jupyter_ioscope.views.flame_waits import STATE_LABELS
from jupyter_ioscope.views.frames import ROOT, STATE
from jupyter_ioscope.views.spans import STRETCHES
from tests import builders
from tests.test_views_flame_waits import waiting, widths


@pytest.fixture(scope="module")
def workers() -> Tree:
    return {tree.key: tree for tree in state_trees(waiting())}["states-workers"]


def test_states_add_up_to_all_time_of_the_threads(workers: Tree) -> None:
    check_tree(workers.root)
    threads = [row for row in waiting().threads if row.role == "worker"]
    wall_us = sum(row.last_ns - row.first_ns for row in threads) / 1e3
    assert workers.root.count == pytest.approx(wall_us, rel=0.02)
    assert sum(child.count for child in workers.root.children) == workers.root.count


def test_running_and_run_queue_are_exact(workers: Tree) -> None:
    threads = [row for row in waiting().threads if row.role == "worker"]
    found = {workers.texts[one.function].name: one.count for one in workers.root.children}
    assert found[RUNNING] == pytest.approx(sum(row.run_ns for row in threads) / 1e3, rel=1e-3)
    queued = sum(row.run_queue_ns for row in threads) / 1e3
    assert found.get(QUEUED, 0) == pytest.approx(queued, rel=1e-3, abs=1)


def test_waits_keep_their_functions_and_running_has_some(workers: Tree) -> None:
    flame = columns(workers)
    check_columns(flame)
    states = widths(flame, 1)
    assert STATE_LABELS["disk"] in states
    assert "rows" in flame["names"]
    assert "decode  In [4]" in flame["names"]


def test_the_page_can_tell_waiting_from_the_other_states(workers: Tree) -> None:
    flame = columns(workers)
    kinds = dict(zip(flame["names"], flame["kinds"], strict=True))
    assert kinds[RUNNING] == STATE
    assert kinds[STATE_LABELS["disk"]] == ROOT
    assert kinds.get(IDLE, STATE) == STATE


def test_every_weight_has_its_stretch_and_all_of_them_are_the_whole(workers: Tree) -> None:
    flame = columns(workers)
    pairs = [pair.split(":") for text in flame["over"] for pair in text.split()]
    assert all(0 <= int(stretch) < STRETCHES for stretch, _ in pairs)
    assert sum(int(weight) for _, weight in pairs) == pytest.approx(1e5, rel=0.02)


def test_a_cut_graph_loses_no_time_of_a_selection(workers: Tree) -> None:
    few = columns(workers, 5)
    whole = sum(int(pair.split(":")[1]) for text in few["over"] for pair in text.split())
    assert whole == pytest.approx(1e5, rel=0.02)


def test_without_stacks_by_state_there_are_the_graphs_of_all_time() -> None:
    profile = builders.profile()
    assert state_trees(profile) == []
    assert all_trees(profile)[0].key == "workers"
