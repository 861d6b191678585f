"""Bars add up, keep their order, and say what was merged; ceilings share one axis."""

from __future__ import annotations

import math

import pytest

from jupyter_ioscope.model.diagnosis import PARTS, Ceiling, Throughput, Waits
from jupyter_ioscope.views.bars import ceiling_bars, legend, merged, share_text, wait_bars
from tests.view_values import diagnosis, thread, waits


def test_consumer_first_then_every_worker_with_its_number() -> None:
    assert [bar["who"] for bar in wait_bars(waits(2))] == ["consumer", "worker 0", "worker 1"]


def test_parts_stand_in_the_order_of_drawing_and_fill_the_bar() -> None:
    for bar in wait_bars(waits(2)):
        names = [part["name"] for part in bar["parts"]]
        assert names == sorted(names, key=PARTS.index)
        assert sum(part["fraction"] for part in bar["parts"]) == pytest.approx(1.0, abs=2e-3)


def test_parts_that_overshoot_the_wall_time_are_scaled_into_the_bar() -> None:
    over = thread(0, cpu=0.8, disk=0.6, rest=0.0)
    bar = wait_bars(Waits(None, (over,), 0.0, 0.0))[0]
    assert sum(part["fraction"] for part in bar["parts"]) == pytest.approx(1.0, abs=1e-3)


def test_doubt_is_printed_where_there_is_some() -> None:
    parts = {p["name"]: p["text"] for p in wait_bars(waits(1))[1]["parts"]}
    assert parts["cpu"].replace("\u00a0", " ") == "70 ± 1 %"
    assert parts["disk"].replace("\u00a0", " ") == "5.0 %", "0.05 % of doubt is none"


def test_no_share_claims_less_than_nothing_or_more_than_everything() -> None:
    texts = [share_text(*pair).replace("\u00a0", " ") for pair in ((0.98, 0.11), (0.0, 0.06))]
    assert texts == ["87 – 100 %", "0 – 6 %"]


def test_many_workers_are_merged_with_the_mean_of_their_shares() -> None:
    rows = (*waits(8).workers, *(thread(n, cpu=0.2 + 0.1 * (n % 2)) for n in range(8, 20)))
    bars = wait_bars(Waits(None, rows, 0.0, 0.0))
    assert len(bars) == 9
    assert bars[-1]["who"] == "12 more"
    share = next(part["fraction"] for part in bars[-1]["parts"] if part["name"] == "cpu")
    assert share == pytest.approx(0.25, abs=1e-3)


def test_nine_workers_are_all_drawn() -> None:
    assert [bar["who"] for bar in wait_bars(waits(9))][-1] == "worker 8"


def test_errors_of_merged_threads_add_as_squares() -> None:
    one = thread(0, cpu=0.5)
    total = merged([one, one, one, one])
    part = next(part for part in total.parts if part.name == "cpu")
    assert part.time_ns == 4 * one.part_ns("cpu")
    assert part.error_ns == pytest.approx(2 * 0.01 * 0.5 * 1e9, rel=1e-6)


def test_a_worker_without_a_number_is_named_by_its_process() -> None:
    unknown = thread(-1, cpu=1.0)
    assert wait_bars(Waits(None, (unknown,), 0, 0))[0]["who"] == "process 99"


def test_an_unknown_part_is_drawn_as_not_attributed_with_its_own_name() -> None:
    bar = wait_bars(Waits(None, (thread(0, cpu=0.5, tape=0.5, rest=0.0),), 0, 0))[0]
    assert [(part["name"], part["label"]) for part in bar["parts"]][-1] == ("rest", "tape")


def test_a_thread_without_time_has_an_empty_bar() -> None:
    bar = wait_bars(Waits(thread(wall_ns=0), (), 0, 0))[0]
    assert bar["parts"] == []
    assert "nothing recorded" in bar["title"]


def test_a_loop_without_work_waits_for_a_batch_and_a_worker_is_idle() -> None:
    consumer, worker = wait_bars(waits(1))
    labels = [{p["name"]: p["label"] for p in bar["parts"]}["idle"] for bar in (consumer, worker)]
    assert labels == ["no batch ready", "idle"]
    named = {entry["name"]: entry["label"] for entry in legend([consumer, worker])}
    assert named["idle"] == "no batch ready, idle"
    assert {entry["label"] for entry in legend([consumer])} >= {"no batch ready"}
    assert {entry["label"] for entry in legend([worker])} >= {"idle"}


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    bars = wait_bars(Waits(thread(step=0.5, idle=0.5, disk=0.0001, rest=0.0), (), 0, 0))
    assert [entry["name"] for entry in legend(bars)] == ["step", "idle"]


def test_ceilings_are_sorted_and_those_that_cannot_be_told_apart_are_limiting() -> None:
    rows, now = ceiling_bars(diagnosis().ceilings, diagnosis().throughput)
    assert [row["label"] for row in rows[:2]] == ["2 workers", "CPU (2 cores)"]
    assert [row["limiting"] for row in rows] == [True, True, False, False]
    assert now is not None
    assert now["text"].replace("\u00a0", " ") == "now 214 samples/s"


def test_a_wide_interval_does_not_make_a_far_ceiling_limiting() -> None:
    def ceiling(value: float) -> Ceiling:
        return Ceiling("cpu", "CPU", value, value / 8, value * 8, "")

    rows, _ = ceiling_bars([ceiling(100), ceiling(150), ceiling(550)], None)
    assert [row["limiting"] for row in rows] == [True, True, False]


def test_an_interval_whose_ends_read_the_same_is_left_out() -> None:
    rows, _ = ceiling_bars([Ceiling("consumer", "your step", 2000, 1999.9, 2000.1, "")], None)
    assert rows[0]["text"] == "2,000"


def test_ceilings_and_now_share_one_axis() -> None:
    rows, now = ceiling_bars(diagnosis().ceilings, diagnosis().throughput)
    assert now is not None
    assert now["fraction"] / rows[0]["fraction"] == pytest.approx(214.2 / 226, rel=1e-2)
    assert rows[2]["fraction"] / rows[0]["fraction"] == pytest.approx(1300 / 226, rel=1e-2)


def test_a_ceiling_out_of_reach_does_not_squeeze_the_others_and_says_so() -> None:
    rows, _ = ceiling_bars(diagnosis().ceilings, diagnosis().throughput)
    assert rows[-1]["fraction"] == 1.0
    assert "beyond this scale" in rows[-1]["text"]
    assert rows[0]["fraction"] > 0.1


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_ceiling_without_a_number_is_not_drawn(value: float) -> None:
    throughput = Throughput(100.0, 1.0, 10.0, 1.0, 10, 100)
    assert ceiling_bars([Ceiling("cpu", "CPU", value, value, value, "")], throughput) == ([], None)


def test_without_throughput_there_is_no_now() -> None:
    rows, now = ceiling_bars(diagnosis().ceilings, None)
    assert rows
    assert now is None
