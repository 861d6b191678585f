"""What a kernel says while a profiled cell runs: few updates, and each of them arrives."""

from __future__ import annotations

import pytest

from tests.bench.live_updates import FAMILIES, Update, counted, most_in, updates


def test_lost_late_and_crowded_updates_are_counted() -> None:
    line, panel = FAMILIES["line"], FAMILIES["panel"]
    times = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 1.2, "e": 4.0}
    sent: list[Update] = [(line, name, at_s) for name, at_s in times.items()]
    received = [(line, name, 0.0) for name in "acbe"] + [(panel, "x", 0.0)]
    found = counted("line", sent, received)
    assert (found["sent"], found["lost"], found["out_of_order"]) == (5, 1, 1)
    assert (found["most_a_second"], found["longest_pause_s"]) == (3, pytest.approx(2.8))
    assert counted("panel", sent, received)["sent"] == 0


def test_a_window_is_open_at_its_end() -> None:
    assert most_in([0.0, 1.0, 2.0], 1.0) == 1
    assert most_in([0.0, 0.9, 0.95, 1.8], 1.0) == 3
    assert most_in([], 1.0) == 0


@pytest.mark.timeout(240)  # a kernel of its own; the ten minutes are in `make bench`
def test_live_line_and_panel_stay_slow_and_lose_nothing() -> None:
    pytest.importorskip("torch")
    sent, received = updates(4.0)
    for family in FAMILIES:
        found = counted(family, sent, received)
        assert found["sent"] > 0, family
        assert found["lost"] == found["out_of_order"] == 0, (family, found)
        assert found["most_a_second"] <= 4, (family, found)
