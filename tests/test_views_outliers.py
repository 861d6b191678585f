"""Outliers, tier, cores and phases in the report: in every form, bounded, with their causes."""

from __future__ import annotations

import json
import re
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Demand, Diagnosis, Likely, Outlier, Outliers, Stall
from jupyter_ioscope.model.observed import GcPause
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.views.bars import handing_on
from jupyter_ioscope.views.evidence import cores_text, phases, tier_text
from jupyter_ioscope.views.figures import figure
from jupyter_ioscope.views.html import report_html
from jupyter_ioscope.views.outliers import outliers, stall_text
from jupyter_ioscope.views.payload import report_payload
from jupyter_ioscope.views.text import report_text
from tests import builders
from tests.outlier_loops import periodic, span
from tests.simulator import MS, PID, S
from tests.view_values import HOSTILE, diagnosis, is_inert, profile, waits


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def row(number: int = 7, *causes: Likely, at_ns: int = S, phase: str = "step") -> Outlier:
    start = builders.empty_profile().start_ns + at_ns
    return Outlier(phase, number, -1, start, start + 500 * MS, 10 * MS, 40.0, 490 * MS, causes, -1)


def with_outliers(*rows: Outlier, count: int = 0, stalls: tuple[Stall, ...] = ()) -> Diagnosis:
    found = Outliers(rows, count or len(rows), sum(one.lost_ns for one in rows), stalls)
    return diagnosis(outliers=found)


def collecting(every: int = 100) -> Profile:
    """Steps that take long every so often because garbage is collected."""
    value = periodic(every)
    pauses = []
    for index in range(every - 1, len(value.batches), every):
        first, last = span(value, index, "step")
        pauses.append(GcPause(PID, -1, first + 10 * MS, last - MS, 2, 100))
    return builders.without(value, gc_pauses=tuple(pauses))


def test_a_report_tells_how_often_and_why_in_every_form() -> None:
    value = collecting()
    found = diagnose(value)
    for text in (report_text(value, found), re.sub("<[^>]+>", " ", report_html(value, found))):
        words = plain(" ".join(text.split()))
        assert "6 batches took far longer than usual" in words
        assert "Every 100 batches" in words
        assert "the garbage collector ran for" in words
        assert "batch 99" in words


def test_what_has_no_known_cause_says_unknown() -> None:
    found = outliers(builders.empty_profile(), with_outliers(row()))
    assert found["rows"][0]["cause"] == "unknown"
    assert "Likely: unknown" in found["rows"][0]["title"]


def test_the_hover_text_ranks_the_causes_and_says_how_well_they_fit() -> None:
    causes = (Likely("gc", 0.9, "the garbage collector ran"), Likely("written", 0.5, "12 MB"))
    title = plain(
        outliers(builders.empty_profile(), with_outliers(row(7, *causes)))["rows"][0]["title"]
    )
    assert "the garbage collector ran (fits 90 %); 12 MB (fits 50 %)" in title


def test_of_many_only_the_worst_are_listed_and_all_counted() -> None:
    rows = [row(i, at_ns=i * 600 * MS // 60) for i in range(30)]
    found = outliers(builders.empty_profile(), with_outliers(*rows, count=812))
    assert len(found["rows"]) == 10
    assert found["summary"].startswith("812 batches")
    assert "worst 10" in found["summary"]


def test_a_slow_fetch_that_nobody_waited_for_cost_nothing() -> None:
    hidden = row(3, phase="fetch")
    value = Outliers((hidden,), 1, 0, ())
    assert (
        "lost nothing" in outliers(builders.empty_profile(), diagnosis(outliers=value))["summary"]
    )


@pytest.mark.parametrize(
    ("stall", "words"),
    [
        (Stall("periodic", "step", 50, 2.1, 12, 3 * S), "Every 50 batches (about 2.1 s) a step"),
        (Stall("periodic", "wait", 0, 2.0, 5, S), "About every 2.0 s a wait took long (5 times"),
        (Stall("epoch_start", "wait", 0, 0, 1, S), "The first wait of an epoch took long (once"),
    ],
)
def test_a_stall_is_one_sentence(stall: Stall, words: str) -> None:
    text = plain(stall_text(stall))
    assert text.startswith(words)
    assert text.endswith("likely: unknown.")


def test_nothing_that_stood_out_takes_no_room() -> None:
    found = outliers(profile(), diagnosis())
    assert (found["summary"], found["rows"], found["stalls"]) == ("", [], [])
    assert "stood out" not in report_text(profile(), diagnosis())
    assert "stood out" not in report_html(profile(), diagnosis())


def test_hostile_texts_stay_inert_in_every_form() -> None:
    bad = with_outliers(
        row(1, Likely(HOSTILE, 1.0, HOSTILE)),
        stalls=(Stall(HOSTILE, HOSTILE, 3, 1, 3, 1, (Likely("x", 1.0, HOSTILE),)),),
    )
    payload = report_payload(builders.empty_profile(), bad)
    assert is_inert(json.dumps(payload["outliers"]["rows"][0]["cause"], ensure_ascii=False))
    assert "<script" not in report_html(builders.empty_profile(), bad)


def test_marks_lie_within_the_run_even_where_clocks_did_not_agree() -> None:
    before, after = row(1, at_ns=-5 * S), row(2, at_ns=90 * S)
    for one in outliers(builders.empty_profile(), with_outliers(before, after))["rows"]:
        assert 0 <= one["x0"] <= one["x1"] <= 1


# -- the plotly timeline ------------------------------------------------------------------------


def test_the_timeline_marks_outliers_where_they_ended_with_their_cause() -> None:
    value = collecting(200)
    found = json.loads(figure("timeline", value, diagnose(value)).to_json())
    marks = next(trace for trace in found["data"] if trace["name"] == "outliers")
    first, last = span(value, 199, "step")
    assert (last - value.start_ns) / 1e9 == pytest.approx(min(marks["x"]), abs=0.01)
    assert set(marks["y"]) == {300.0}
    assert all("garbage collector" in text for text in marks["text"])
    bands = found["layout"]["shapes"]
    assert len(bands) == len(marks["x"]) == 3
    assert any(
        band["x0"] == pytest.approx((first - value.start_ns) / 1e9, abs=0.01) for band in bands
    )


def test_a_timeline_without_outliers_has_no_marks() -> None:
    found = json.loads(figure("timeline", profile(), diagnosis()).to_json())
    assert "outliers" not in [trace["name"] for trace in found["data"]]
    assert "shapes" not in found["layout"]


# -- tier, cores, phases, threads beside --------------------------------------------------------


@pytest.mark.parametrize("tier", ["full", "no_ptrace", "in_process"])
def test_every_report_names_its_tier(tier: str) -> None:
    value = builders.profile(2, tier=tier, batches=20)
    found = diagnose(value)
    assert found.tier.title in report_html(value, found)
    assert found.tier.title in " ".join(report_text(value, found).split())
    assert report_payload(value, found)["tier"] == tier_text(found.tier)


def test_cores_are_told_with_the_quota_that_held_them_back() -> None:
    demand = Demand(2.0, 1.42, 0.3, 0.25, 1.5, 40)
    text = plain(cores_text(demand, 10.0))
    assert text == (
        "This loop used 1.4 of 2 cores, other programs 0.30, on average 0.25 of its threads waited "
        "for a core, the CPU quota held it back for 1.5 s (15 % of the run), 40 times."
    )
    assert plain(cores_text(Demand(1, 0.5, None, None, None, None), 1)) == (
        "This loop used 0.50 of 1 core."
    )
    assert cores_text(None, 1.0) == ""


def test_phases_are_shares_of_the_fetching_threads_time() -> None:
    value = builders.profile(2, fetch_ms=20, collate_fraction=0.25, batches=200, step_ms=0.1)
    found = {one["name"]: one for one in phases(value, diagnose(value))}
    assert list(found) == ["start_up", "index_wait", "fetch", "collate", "put"]
    assert plain(found["fetch"]["perBatch"]) == "15 ms"
    assert plain(found["collate"]["share"]).rstrip(" %") in {"23", "24", "25"}
    assert phases(profile(), diagnosis()) == []


def test_threads_that_hand_batches_on_are_shown_where_they_work() -> None:
    busy = builders.profile(2, feeder_ms=6, fetch_ms=20, batches=100)
    assert [name for name, _ in handing_on(diagnose(busy).waits)] == ["feeder threads"]
    idle = builders.profile(2, feeder_ms=0.01, fetch_ms=20, batches=100)
    assert handing_on(diagnose(idle).waits) == []
    assert handing_on(waits(2)) == []


def test_a_profile_with_a_throttled_group_says_so_in_the_report() -> None:
    value = builders.profile(2, batches=50)
    times = (value.start_ns, value.end_ns)
    held = Series("cgroup_throttled_ns", "ns", "cumulative", "cgroup", times, (0, 0.4e9))
    value = builders.without(
        value, series=MappingProxyType({**value.series, "cgroup_throttled_ns": held})
    )
    words = plain(" ".join(report_text(value, diagnose(value)).split()))
    assert "the CPU quota held it back for 400 ms" in words
