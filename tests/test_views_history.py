"""The profiled cells of a kernel: noted when they end, told in their order."""

from __future__ import annotations

from collections import deque

import pytest

from jupyter_ioscope import history, line_commands
from jupyter_ioscope.model.history import History, Ran
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.views.history import history_html, history_text
from tests import builders
from tests.view_values import HOSTILE, UNICODE


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_ran", deque(maxlen=3))


def test_cells_are_told_in_the_order_in_which_they_ended_and_old_ones_go() -> None:
    for number in range(5):
        value = builders.without(builders.profile(batches=20), label=f"try {number}")
        history.remember(Recording.of(value))
    found = line_commands.run("history", {})
    assert [row.label for row in found.ran] == ["try 2", "try 3", "try 4"]
    text = history_text(found)
    assert text.index("try 2") < text.index("try 4")
    assert all(row.batches == 20 and 0 < row.wait_fraction < 1 for row in found.ran)


def test_a_cause_is_told_where_the_report_was_drawn_and_nothing_is_judged_for_it() -> None:
    shown, quiet = (Recording.of(builders.profile(hot="decode")) for _ in range(2))
    cause = shown.diagnosis.findings[0].title
    for one in (shown, quiet):
        history.remember(one)
    assert [row.cause for row in history.history().ran] == [cause, ""]
    assert "diagnosis" not in vars(quiet)


@pytest.mark.parametrize("text", [HOSTILE, UNICODE, ""])
def test_labels_and_causes_are_only_text(text: str) -> None:
    told = History((Ran(7, text, 1_200, 9_600, 3.0, 0.81, text), Ran(0, text, 9, -1, 1.0, 0.0, "")))
    page = history_html(told)
    assert "<script" not in page.lower()
    assert "In [7]" in page
    lines = history_text(told).splitlines()
    assert max(map(len, lines)) <= 100
    assert "1,200" in lines[1]
    assert "3,200" in lines[1]
    assert "81" in lines[1]
    assert "–" in lines[2]


def test_before_the_first_cell_it_says_what_to_do() -> None:
    assert "put %%ioscope on the cell" in history_text(History(()))
    assert "put %%ioscope on the cell" in history_html(History(()))
