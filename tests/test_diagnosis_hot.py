"""The user's function in which most fetching was seen."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.hot import hottest, users
from jupyter_ioscope.model.readings import Frame, Stack, Stacks
from tests import builders

FETCH = Frame("fetch", "/x/site-packages/torch/utils/data/_utils/fetch.py", 54)


def stacks(*rows: tuple[tuple[Frame, ...], int], role: str = "worker") -> Stacks:
    frames = sorted({frame for row, _ in rows for frame in row})
    found = tuple(
        Stack(role, 0, 1, "MainThread", tuple(frames.index(frame) for frame in row), count)
        for row, count in rows
    )
    return Stacks("py-spy", 25.0, True, tuple(frames), found)


def test_the_users_own_code_is_told_from_libraries() -> None:
    assert users(Frame("f", "/home/me/data.py", 3))
    assert users(Frame("f", "In [3]", 3, 3))
    assert not users(Frame("f", "/usr/lib/python3.11/json/decoder.py", 3))
    assert not users(Frame("f", "/v/lib/python3.11/site-packages/PIL/Image.py", 3))
    assert not users(Frame("f", "<frozen importlib._bootstrap>", 3))


def test_the_innermost_function_of_the_user_gets_the_time_of_libraries_below() -> None:
    get, load = Frame("__getitem__", "/me/data.py", 5), Frame("load", "/me/data.py", 9)
    decode = Frame("decode", "/x/site-packages/PIL/Image.py", 1)
    hot = hottest(stacks(((FETCH, get, load, decode), 30), ((FETCH, get), 10)), "worker")
    assert hot is not None
    assert (hot.name, hot.line, hot.below) == ("load", 9, "decode")
    assert hot.fraction == 0.75
    assert 0.05 < hot.error < 0.09


def test_a_function_seen_in_several_lines_is_not_all_put_down_to_one() -> None:
    opens, shrinks = Frame("load", "/me/data.py", 9), Frame("load", "/me/data.py", 10)
    hot = hottest(stacks(((FETCH, opens), 30), ((FETCH, shrinks), 10)), "worker")
    assert hot is not None
    assert (hot.line, hot.fraction, hot.line_fraction) == (9, 1.0, 0.75)


def test_waiting_for_the_next_task_is_no_fetch() -> None:
    get = Frame("__getitem__", "/me/data.py", 5)
    idle = Frame("_worker_loop", "/x/site-packages/torch/utils/data/_utils/worker.py", 250)
    hot = hottest(stacks(((idle,), 500), ((FETCH, get), 10)), "worker")
    assert hot is not None
    assert hot.fraction == 1.0


def test_a_step_in_the_consumer_is_not_blamed_for_fetching() -> None:
    profile = builders.profile(0, fetch_ms=2, step_ms=30)
    assert profile.stacks is not None
    hot = hottest(profile.stacks, "consumer")
    assert hot is None or hot.name != "train"


def test_no_stack_of_a_fetch_gives_no_name() -> None:
    assert hottest(stacks(((Frame("f", "/me/x.py", 1),), 5)), "worker") is None
