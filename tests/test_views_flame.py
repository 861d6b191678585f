"""Flame graphs: sums hold, nothing is wider than its caller, cuts are said."""

from __future__ import annotations

import random

import pytest

from jupyter_ioscope.errors import IoscopeError
from jupyter_ioscope.model.readings import Frame, Stack, Stacks
from jupyter_ioscope.views.flame import (
    GROWN,
    Node,
    Tree,
    check_columns,
    check_tree,
    columns,
    trees,
)
from jupyter_ioscope.views.frames import CELL, LIBRARY, ROOT, USER, kind_of, short_file
from jupyter_ioscope.views.shapes import IFlame
from tests import builders
from tests.view_values import HOSTILE
from tests.view_values import stacks as many_stacks

LIBRARY_FILE = "/env/lib/python3.11/site-packages/PIL/Image.py"


def stacks_of(*rows: tuple[str, int, str, int]) -> Stacks:
    """Rows of (role, worker, frames as letters from the outside in, count)."""
    letters = sorted({letter for _, _, path, _ in rows for letter in path})
    frames = tuple(Frame(letter, "/home/user/train.py", 10) for letter in letters)
    made = tuple(
        Stack(role, worker, 1, "MainThread", tuple(letters.index(x) for x in path), count)
        for role, worker, path, count in rows
    )
    return Stacks("py-spy", 25.0, True, frames, made)


def spans(flame: IFlame) -> dict[tuple[str, int], tuple[float, float]]:
    """(name, depth) -> (x0, x1)."""
    rows = zip(flame["name"], flame["depth"], flame["x0"], flame["x1"], strict=True)
    return {(flame["names"][name], depth): (x0, x1) for name, depth, x0, x1 in rows}


def by_key(value: Stacks | None) -> dict[str, Tree]:
    return {tree.key: tree for tree in trees(value)}


def test_widths_are_shares_of_samples_and_the_widest_comes_first() -> None:
    tree = by_key(stacks_of(("worker", 0, "ab", 1), ("worker", 0, "ac", 2), ("worker", 0, "d", 1)))
    found = spans(columns(tree["workers"]))
    assert found == {
        ("worker 0", 0): (0, 1),
        ("a", 1): (0, 0.75),
        ("d", 1): (0.75, 1),
        ("c", 2): (0, 0.5),
        ("b", 2): (0.5, 0.75),
    }


def test_workers_come_merged_then_one_by_one_then_the_consumer() -> None:
    value = stacks_of(
        ("consumer", -1, "a", 1),
        ("worker", 1, "b", 2),
        ("worker", 0, "a", 3),
        ("feeder", 0, "c", 4),
    )
    found = [(tree.key, tree.label, tree.root.count) for tree in trees(value)]
    assert found == [
        ("workers", "workers merged", 5),
        ("worker-0", "worker 0", 3),
        ("worker-1", "worker 1", 2),
        ("consumer", "consumer", 1),
        ("hand_over", "hand-over threads", 4),
    ]


def test_beyond_eight_workers_the_rest_is_merged_and_counted() -> None:
    value = stacks_of(*(("worker", n, "ab", 1) for n in range(64)))
    found = trees(value)
    assert [tree.key for tree in found[-2:]] == ["worker-7", "workers-rest"]
    assert found[-1].label == "56 more workers"
    assert found[-1].root.count == 56
    assert found[0].root.count == 64


def test_lines_of_one_function_are_one_frame() -> None:
    frames = (Frame("f", LIBRARY_FILE, 10), Frame("f", LIBRARY_FILE, 12))
    rows = tuple(Stack("consumer", -1, 1, "MainThread", (i,), 1) for i in (0, 1))
    flame = columns(trees(Stacks("py-spy", 25.0, True, frames, rows))[0])
    assert flame["names"] == ["consumer", "f"]
    assert flame["details"][1] == "PIL/Image.py, lines 10, 12"


def test_recursion_stands_on_itself() -> None:
    flame = columns(trees(stacks_of(("consumer", -1, "aaa", 3)))[0])
    assert flame["depth"] == [0, 1, 2, 3]
    check_columns(flame)


def test_no_stacks_give_no_graph() -> None:
    assert trees(None) == []
    assert trees(Stacks("py-spy", 25.0, True, (), ())) == []
    assert trees(stacks_of(("worker", 0, "a", 0))) == []


def test_frames_that_do_not_exist_end_the_stack() -> None:
    value = Stacks(
        "py-spy",
        25.0,
        True,
        (Frame("a", "x.py", 1),),
        (Stack("consumer", -1, 1, "MainThread", (0, 7), 2),),
    )
    flame = columns(trees(value)[0])
    assert flame["names"] == ["consumer", "a"]


def random_stacks(seed: int) -> Stacks:
    rng = random.Random(seed)
    return stacks_of(
        *(
            ("worker", rng.randrange(3), "".join(rng.choices("abcdef", k=rng.randrange(8))), n)
            for n in rng.choices(range(1, 50), k=200)
        )
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("frames", [1, 2, 17, 100, GROWN])
def test_sums_and_nesting_hold_at_every_size(seed: int, frames: int) -> None:
    for tree in trees(random_stacks(seed)):
        check_tree(tree.root)
        flame = columns(tree, frames)
        check_columns(flame)
        assert len(flame["x0"]) <= frames
        assert flame["samples"] == tree.root.count


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_keeps_the_widest_frames_and_counts_the_rest(seed: int) -> None:
    tree = trees(random_stacks(seed))[0]
    whole, cut = columns(tree), columns(tree, 20)
    widths = sorted((b - a for a, b in zip(whole["x0"], whole["x1"], strict=True)), reverse=True)
    narrowest = min(b - a for a, b in zip(cut["x0"], cut["x1"], strict=True))
    assert narrowest >= widths[20] - 2e-4
    missing = missing_samples(tree, 20)
    assert cut["label"] == "workers merged"
    assert f"{missing:,} of them" in cut["details"][cut["name"][0]]


def missing_samples(tree: Tree, frames: int) -> int:
    total, pending = 0, [tree.root]
    while pending:
        for child in pending.pop().children:
            if 0 <= child.rank < frames:
                pending.append(child)
            else:
                total += child.count
    return total


def test_a_whole_graph_claims_no_loss() -> None:
    flame = columns(trees(stacks_of(("worker", 0, "abc", 5)))[0])
    assert flame["details"][flame["name"][0]] == "5 samples"


@pytest.mark.timeout(240)
def test_a_hundred_thousand_stacks_are_drawn_within_the_frames_asked_for() -> None:
    found = trees(many_stacks(100_000))
    assert sum(tree.root.count for tree in found if tree.key != "workers") == sum(
        1 + i % 3 for i in range(100_000)
    )
    for tree in found:
        check_tree(tree.root)
        flame = columns(tree, 200)
        assert len(flame["x0"]) == 200
        assert max(flame["depth"]) > 15
        check_columns(flame)


def test_the_checks_find_wrong_sums_and_frames_that_leave_their_caller() -> None:
    root = Node(-1, 0, [Stack("worker", 0, 1, "t", (), 2)])
    root.children = [Node(0, 1, [Stack("worker", 0, 1, "t", (0,), 3)])]
    with pytest.raises(IoscopeError, match="a frame of 2 samples called frames of 3"):
        check_tree(root)
    flame = columns(trees(stacks_of(("worker", 0, "ab", 1), ("worker", 0, "c", 1)))[0])
    check_columns(flame)
    wider: IFlame = {**flame, "x1": [1.0, 0.5, 1.0, 0.9]}
    with pytest.raises(IoscopeError, match="leaves its caller"):
        check_columns(wider)
    with pytest.raises(IoscopeError, match="not in order"):
        check_columns({**flame, "x0": [0.0, 0.5, 0.0, 0.0]})


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (Frame("f", "In [4]", 3, 4), CELL),
        (Frame("f", "/tmp/ipykernel_1/123.py", 3, 4), CELL),
        (Frame("f", "/home/user/data.py", 3), USER),
        (Frame("f", "C:\\Users\\me\\data.py", 3), USER),
        (Frame("f", LIBRARY_FILE, 3), LIBRARY),
        (Frame("f", "C:\\env\\Lib\\site-packages\\PIL\\Image.py", 3), LIBRARY),
        (Frame("f", "/usr/lib/python3/dist-packages/numpy/core.py", 3), LIBRARY),
        (Frame("f", "/usr/lib/python3.11/threading.py", 3), LIBRARY),
        (Frame("f", "<frozen importlib._bootstrap>", 3), LIBRARY),
        (Frame("f", "", 0), LIBRARY),
        (Frame("memcpy", "/lib/x86_64-linux-gnu/libc.so.6", 0), LIBRARY),
    ],
)
def test_whose_code_a_frame_is_shows_in_its_path(frame: Frame, kind: int) -> None:
    assert kind_of(frame) == kind


def test_frames_of_cells_name_their_cell_and_the_root_is_its_own_kind() -> None:
    flame = columns(by_key(builders.profile().stacks)["workers"])
    assert flame["kinds"][0] == ROOT
    assert "__getitem__  In [4]" in flame["names"]
    assert flame["kinds"][flame["names"].index("__getitem__  In [4]")] == CELL


def test_a_long_path_keeps_its_end() -> None:
    text = short_file("/home/" + "x" * 300 + "/project/data.py", 40)
    assert len(text) == 40
    assert text.startswith("…")
    assert text.endswith("/project/data.py")


def test_hostile_names_are_plain_and_short() -> None:
    frames = (Frame(HOSTILE * 20, HOSTILE * 20, 1),)
    rows = (Stack("consumer", -1, 1, "MainThread", (0,), 1),)
    flame = columns(trees(Stacks(HOSTILE, 25.0, True, frames, rows))[0])
    assert all(text.isprintable() for text in (*flame["names"], *flame["details"]))
    assert max(map(len, flame["names"])) <= 80
    assert max(map(len, flame["details"])) <= 110
