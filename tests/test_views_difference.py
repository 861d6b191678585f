"""A against B: shares of both, changes in words, one graph that adds up."""

from __future__ import annotations

import json

import pytest

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.bundle import LIMIT_BYTES, saved_bytes
from jupyter_ioscope.views.difference import Difference, changes, differences, flame_of
from jupyter_ioscope.views.flame import check_columns
from jupyter_ioscope.views.shapes import IFlame
from tests import builders
from tests.test_views_flame import stacks_of
from tests.test_views_payload import wrong
from tests.view_values import profile
from tests.view_values import stacks as many_stacks


def with_stacks(*rows: tuple[str, int, str, int]) -> Profile:
    return builders.without(builders.empty_profile(), stacks=stacks_of(*rows))


A = with_stacks(("worker", 0, "fd", 80), ("worker", 0, "fc", 20))
B = with_stacks(("worker", 0, "fr", 5), ("worker", 0, "fd", 3), ("worker", 0, "fc", 2))


def frame(flame: IFlame, name: str) -> tuple[float, float]:
    """(width, change) of the only frame of a name."""
    at = flame["name"].index(flame["names"].index(name))
    return flame["x1"][at] - flame["x0"][at], flame["delta"][at]


def test_widths_are_the_mean_of_both_shares_and_changes_their_difference() -> None:
    (group,) = differences(A, B)
    flame = flame_of(group, 100)
    check_columns(flame)
    assert frame(flame, "f") == pytest.approx((1.0, 0.0))
    assert frame(flame, "d") == pytest.approx(((0.8 + 0.3) / 2, 0.3 - 0.8))
    assert frame(flame, "r") == pytest.approx((0.25, 0.5))
    assert frame(flame, "c") == pytest.approx((0.2, 0.0))


def test_changes_below_a_frame_add_up_to_its_own() -> None:
    (group,) = differences(A, B)
    inside = sum(child.b - child.a for child in group.root.below.values())
    assert inside == pytest.approx(0.0)


def test_words_name_what_changed_most_and_leave_out_what_did_not() -> None:
    (group,) = differences(A, B)
    assert [name for name, _ in changes(group.root)] == ["d", "r"]
    said = Difference(A, B).headline
    assert said.replace("\u00a0", " ") == "worker 0, B against A: −50 points in d, +50 points in r"


def test_a_profile_against_itself_shows_no_difference() -> None:
    found = Difference(profile(), profile())
    assert "no difference to see" in found.headline
    assert all(set(flame["delta"]) == {0.0} for flame in found.report()["flames"])


def test_recursion_counts_once() -> None:
    deep = with_stacks(("worker", 0, "fff", 10))
    flat = with_stacks(("worker", 0, "g", 10))
    (group,) = differences(deep, flat)
    assert dict(changes(group.root)) == pytest.approx({"f": -1.0, "g": 1.0})


def test_without_anything_in_common_it_says_so() -> None:
    only = with_stacks(("consumer", -1, "a", 1))
    for other in (A, builders.empty_profile()):
        with pytest.raises(InputError, match="cannot be compared as flame graphs"):
            differences(only, other)


def test_the_page_can_read_it_and_a_notebook_keeps_it_small() -> None:
    big = builders.without(profile(), stacks=many_stacks(5000))
    other = builders.without(profile(), stacks=many_stacks(4000, names=300))
    made = Difference(big, other)._repr_mimebundle_()
    assert saved_bytes(made) <= LIMIT_BYTES
    report = Difference(big, other).report()
    assert wrong(report, "IReport") == []
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    for flame in report["flames"]:
        check_columns(flame)
    assert "points in" in made["text/plain"]


def test_threads_without_a_change_have_no_heading() -> None:
    same = Difference(A, A)
    assert same.changes  # the threads are there
    assert str(same).strip().splitlines() == [same.headline, same._label]
