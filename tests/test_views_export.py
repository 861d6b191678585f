"""Exported files follow their formats to the letter, and hold what the profile holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack, Stacks
from jupyter_ioscope.views.export import ENDINGS, export, folded_text, speedscope_text, trace_text
from jupyter_ioscope.views.places import places_of
from tests import builders
from tests.test_views_flame_waits import waiting
from tests.view_values import HOSTILE, UNICODE, is_inert, profile

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def speedscope_problems(document: Any) -> list[str]:
    """What speedscope's file-format-spec.ts forbids: keys, types, and indices that lead nowhere."""
    found: list[str] = []
    known = {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    found += [f"unknown key {key}" for key in set(document) - known]
    if document["$schema"] != "https://www.speedscope.app/file-format-schema.json":
        found.append("schema")
    frames = document["shared"]["frames"]
    for frame in frames:
        kinds = {"name": str, "file": str, "line": int, "col": int}
        if "name" not in frame or any(not isinstance(v, kinds[k]) for k, v in frame.items()):
            found.append(f"frame {frame}")
    for one in document["profiles"]:
        keys = {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        if set(one) != keys or one["type"] != "sampled" or one["unit"] not in UNITS:
            found.append(f"profile {one['name']}: keys")
        if len(one["samples"]) != len(one["weights"]):
            found.append(f"profile {one['name']}: lengths")
        if any(not 0 <= index < len(frames) for stack in one["samples"] for index in stack):
            found.append(f"profile {one['name']}: a frame that is not there")
        if abs(one["endValue"] - one["startValue"] - sum(one["weights"])) > 1e-3:
            found.append(f"profile {one['name']}: ends elsewhere")
    if not 0 <= document.get("activeProfileIndex", 0) < len(document["profiles"]):
        found.append("active profile")
    return found


def trace_problems(document: Any) -> list[str]:
    """What the Trace Event Format asks of a JSON object with M, X and C events, and Perfetto of
    times: it drops those below zero and calls the trace damaged."""
    found = [] if document.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit"]
    for event in document["traceEvents"]:
        whole = all(isinstance(event[key], int) for key in ("pid", "tid"))
        timed = isinstance(event["ts"], (int, float)) and event["ts"] >= 0
        timed = timed and isinstance(event["name"], str)
        named = event["ph"] != "M" or event["name"] in (
            "process_name", "thread_name", "process_sort_index",
        )  # fmt: skip
        lasting = event["ph"] != "X" or event["dur"] >= 0
        counted = event["ph"] != "C" or all(
            isinstance(value, (int, float)) for value in event["args"].values()
        )
        known = event["ph"] in "MXC"
        if not (whole and timed and named and lasting and counted and known):
            found.append(str(event))
    return found


def test_the_checks_find_mistakes() -> None:
    good = json.loads(speedscope_text(profile()))
    assert speedscope_problems({**good, "more": 1})
    wrong = json.loads(json.dumps(good))
    wrong["profiles"][0]["samples"][0] = [10**6]
    assert speedscope_problems(wrong)
    trace = json.loads(trace_text(profile()))
    trace["traceEvents"][-1]["ph"] = "?"
    assert trace_problems(trace)
    trace["traceEvents"][-1] |= {"ph": "C", "ts": -1}
    assert trace_problems(trace)


def test_speedscope_gets_every_thread_and_every_second() -> None:
    value = profile(3)
    document = json.loads(speedscope_text(value))
    assert speedscope_problems(document) == []
    assert value.stacks is not None
    whole = sum(sum(one["weights"]) for one in document["profiles"])
    assert whole == pytest.approx(value.stacks.samples() / value.stacks.rate_hz, rel=1e-3)
    assert len(document["profiles"]) == 4
    assert {frame["name"] for frame in document["shared"]["frames"]} >= {"decode In [4]"}


def test_speedscope_gets_the_waits_below_their_states() -> None:
    document = json.loads(speedscope_text(waiting()))
    assert speedscope_problems(document) == []
    waits = next(one for one in document["profiles"] if one["name"] == "waits of workers")
    frames = document["shared"]["frames"]
    states = {frames[stack[0]]["name"] for stack in waits["samples"]}
    assert states == {"waiting for files and disks", "waiting for pages of memory maps"}


def test_a_trace_has_a_slice_for_every_wait_step_and_fetch() -> None:
    value = profile(2, batches=50)
    document = json.loads(trace_text(value))
    assert trace_problems(document) == []
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    for name, count in (("wait", 50), ("step", 50), ("fetch", len(value.fetches))):
        assert sum(event["name"] == name for event in slices) == count
    waited_us = sum(event["dur"] for event in slices if event["name"] == "wait")
    assert waited_us == pytest.approx(sum(row.wait_ns for row in value.batches) / 1e3)


def test_slices_of_one_thread_lie_inside_one_another_or_apart() -> None:
    document = json.loads(trace_text(profile(2)))
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            end = event["ts"] + event["dur"]
            rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], end))
    for spans in rows.values():
        open_ends: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start + 1e-3:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 1e-3
            open_ends.append(end)


def test_sampled_states_and_counters_are_in_the_trace() -> None:
    document = json.loads(trace_text(profile(2, states={"cpu": 0.5, "disk": 0.5})))
    names = {event["name"] for event in document["traceEvents"]}
    assert {"running", "disk", "CPU", "memory"} <= names


def test_what_was_read_before_the_start_is_in_the_trace_from_its_start() -> None:
    value = profile(2, states={"cpu": 0.5, "disk": 0.5})
    late = builders.without(value, start_ns=value.start_ns + value.wall_ns // 2)
    document = json.loads(trace_text(late))
    assert trace_problems(document) == []
    counters = [event for event in document["traceEvents"] if event["ph"] == "C"]
    at_start = [event["name"] for event in counters if event["ts"] == 0]
    assert "CPU" in at_start
    assert len(at_start) == len(set(at_start))


def test_own_code_is_told_by_line_and_libraries_by_function() -> None:
    library = "/usr/lib/python3.11/queue.py"
    frames = (
        Frame("loop", "In [2]", 1, 2), Frame("loop", "In [2]", 4, 2), Frame("once", "/my/x.py", 7),
        Frame("get", library, 171), Frame("get", library, 180),
    )  # fmt: skip
    places = places_of(frames)
    assert [place.name for place in places] == [
        "loop In [2]:1", "loop In [2]:4", "once", "get", "get",
    ]  # fmt: skip
    assert places[3] == places[4]
    assert [place.line for place in places[:4]] == [1, 4, 7, 171]


def test_threads_come_in_the_order_in_which_people_look_for_them() -> None:
    frames = (Frame("run", "/my/x.py", 1),)
    who = [("other", -1, "Feeder"), ("worker", 10, ""), ("consumer", -1, ""), ("worker", 2, "")]
    stacks = tuple(Stack(role, worker, 7, thread, (0,), 5) for role, worker, thread in who)
    crowd = Stack("other", -1, 7, "Feeder", (0,), 10**6)
    made = Stacks("py-spy", 25.0, True, frames, (*stacks, crowd))
    document = json.loads(speedscope_text(builders.without(profile(), stacks=made)))
    assert [one["name"] for one in document["profiles"]] == [
        "consumer (7)", "worker 2 (7)", "worker 10 (7)", "other (7) Feeder, several threads",
    ]  # fmt: skip


def test_folded_lines_hold_all_samples() -> None:
    value = profile(2)
    lines = folded_text(value).splitlines()
    assert value.stacks is not None
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == value.stacks.samples()
    assert any(line.startswith("worker 0 (") and ";decode In [4]" in line for line in lines)


def hostile() -> Profile:
    frames = (Frame(HOSTILE + ";x", HOSTILE, 3), Frame(UNICODE, "/a;b.py", 1))
    stacks = (Stack("worker", 0, 1, HOSTILE, (0, 1), 5),)
    value = builders.without(profile(), stacks=Stacks("py-spy", 25.0, True, frames, stacks))
    return builders.without(value, label=HOSTILE)


@pytest.mark.parametrize("ending", ENDINGS)
def test_hostile_names_break_no_format(ending: str) -> None:
    text = ENDINGS[ending](hostile())
    assert is_inert(text)
    if ending == ".folded":
        (line,) = text.splitlines()
        assert line.count(";") == 2
    else:
        document = json.loads(text)
        check = trace_problems if ending == ".trace.json" else speedscope_problems
        assert check(document) == []


def test_the_ending_of_the_name_says_the_format(tmp_path: Path) -> None:
    for ending in ENDINGS:
        export(profile(), tmp_path / f"run{ending}")
        assert (tmp_path / f"run{ending}").stat().st_size > 100
    with pytest.raises(InputError, match=r"\.speedscope\.json, \.trace\.json, \.folded"):
        export(profile(), tmp_path / "run.json")


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    bare = builders.without(profile(), stacks=None)
    for ending in (".speedscope.json", ".folded"):
        with pytest.raises(InputError, match="no stacks to export"):
            export(bare, tmp_path / f"run{ending}")
    export(bare, tmp_path / "run.trace.json")
    with pytest.raises(InputError, match="there is no folder"):
        export(profile(), tmp_path / "none" / "run.folded")
    (tmp_path / "taken.folded").mkdir()
    with pytest.raises(ProfileFileError, match="cannot write"):
        export(profile(), tmp_path / "taken.folded")


def test_an_empty_profile_gives_an_empty_trace() -> None:
    assert trace_problems(json.loads(trace_text(builders.empty_profile()))) == []
