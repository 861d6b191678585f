"""A search in words: what to use first, what was timed, and nothing unescaped."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from jupyter_ioscope.api import load
from jupyter_ioscope.model.prediction import Predicted, Prediction, Setting
from jupyter_ioscope.model.tuning import LeftOut, Tried, Tuning
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.views.html import report_html
from jupyter_ioscope.views.predictions import missed_text, prediction_text
from jupyter_ioscope.views.search import headline, tuning_payload
from jupyter_ioscope.views.tuning import tuning_figure, tuning_html, tuning_text
from tests import builders
from tests.view_values import HOSTILE, profile


def tuning(changed: bool = True, note: str = "") -> Tuning:
    now, best = Setting(2, 2), Setting(4, 2)
    grid = tuple(Predicted(Setting(n, p), 100.0 * n, 90.0 * n, 110.0 * n)
                 for n in (1, 2, 4) for p in (1, 2))  # fmt: skip
    return Tuning(
        current=now,
        best=best if changed else now,
        margin=0.03,
        tried=(Tried(now, 200, 200, 0.1, 10**8), Tried(best, 380, 400, 0.2, 2 * 10**8)),
        predicted=(Predicted(Setting(0, 2), 60, 50, 70), *grid),
        left_out=(LeftOut(Setting(64, 8), note or "no room"),),
        comparison=builders.comparison(1.9) if changed else None,
        code="loader = DataLoader(num_workers=4)" if changed else "",
        seconds=31.0,
        isolation_text="in a forked child",
        notes=(note,) if note else (),
    )


def test_the_first_line_says_what_to_use_and_how_sure_that_is() -> None:
    text = tuning_text(tuning())
    assert text.splitlines()[0].startswith("Use 4 workers × 2 ahead instead of 2 workers × 2 ahead")
    assert "1.90 × faster" in headline(tuning()).replace("\u00a0", " ")
    assert "num_workers=4" in text
    assert "64 workers" in text


def test_workers_that_stay_are_part_of_what_to_use() -> None:
    found = replace(tuning(), keep_workers=True)
    assert "Use 4 workers × 2 ahead, kept between epochs, instead of" in headline(found)
    only = replace(found, best=found.current)
    assert headline(only).startswith("Keep 2 workers × 2 ahead, and the workers between epochs")
    assert "persistent_workers=True" in str(only)


def test_a_loader_to_keep_is_said_to_be_kept() -> None:
    assert headline(tuning(changed=False)).startswith("Keep 2 workers")


def test_a_search_without_time_does_not_claim_that_nothing_better_exists() -> None:
    alone = replace(tuning(changed=False), tried=tuning().tried[:1])
    assert headline(alone).startswith("Not enough time")
    few = builders.comparison(1.9, verdict="undecided", pairs=1)
    unproven = replace(tuning(changed=False), comparison=few)
    assert headline(unproven).startswith("Not proven: draft decode looked best in the search")
    many = builders.comparison(1.1, verdict="undecided", pairs=11)
    assert "nor ruled out" in headline(replace(unproven, comparison=many))


def test_names_are_escaped_in_the_page() -> None:
    page = tuning_html(tuning(note=HOSTILE))
    assert "<script" not in page.lower()
    assert "onerror=" not in page.lower() or "&lt;" in page


def test_the_heat_map_holds_every_setting_with_workers_and_marks_those_timed() -> None:
    figure = json.loads(tuning_figure(tuning()).to_json())
    (heat,) = figure["data"]
    assert heat["x"] == ["1", "2", "4"]
    assert heat["z"] == [[100, 200, 400], [100, 200, 400]]
    assert [bool(cell) for cell in heat["text"][1]] == [False, True, True]
    assert len(json.dumps(figure)) < 8_000


def test_the_page_gets_a_grid_with_what_was_timed_and_the_best_marked() -> None:
    payload = tuning_payload(tuning())
    grid = payload["grid"]
    assert grid["columns"] == ["0", "1", "2", "4"]
    assert all(len(row["cells"]) == 4 for row in grid["rows"])
    (best,) = [cell for row in grid["rows"] for cell in row["cells"] if cell["best"]]
    assert (best["text"], best["timed"], best["level"]) == ("380", True, 0.95)
    unknown = grid["rows"][0]["cells"][0]  # no workers, one ahead: there is no such setting
    assert (unknown["text"], unknown["level"]) == ("", -1.0)
    assert "predicted 200" in grid["rows"][1]["cells"][2]["title"]


def test_a_prediction_is_a_range_or_a_bound() -> None:
    assert prediction_text(None) == ""
    exact = prediction_text(Prediction(1.8, 1.5, 2.2, "how")).replace("\u00a0", " ")
    assert exact == "× 1.80 (× 1.50 – 2.20)"
    bound = prediction_text(Prediction(math.nan, 1.0, 1.9, "how"))
    assert bound.startswith("at most")
    assert prediction_text(Prediction(1.0, 0.0, math.inf, "how")) == ""


def test_what_was_missed_is_said() -> None:
    told = Prediction(2.0, 1.6, 2.4, "how")
    assert "5% above it, inside" in missed_text(told, 2.1)
    assert "outside" in missed_text(told, 1.0)
    assert "inside that bound" in missed_text(Prediction(math.nan, 1.0, 1.9, "how"), 1.4)
    bound = Prediction(math.nan, 1.0, 1.9, "how")
    assert "inside that bound." in missed_text(bound, 0.7)  # no more than it: it was no promise
    assert "outside that bound." in missed_text(bound, 2.4, 2.1, 2.8)
    assert "outside that bound, and its interval reaches into it" in missed_text(bound, 2.4, 1.8, 3)
    assert missed_text(told, 1.0, 0.9, 1.1).endswith("outside the interval.")
    assert missed_text(told, 1.0, 0.0, math.inf).endswith("interval, which its own overlaps.")
    assert missed_text(None, 1.4) == ""
    assert missed_text(told, math.nan) == ""


def test_a_report_shows_a_search_in_every_form_and_a_file_keeps_it(tmp_path: Path) -> None:
    found = tuning(note=HOSTILE)
    recording = Recording.of(profile(), (), (builders.comparison(1.9),), (found,))
    text, page = str(recording), report_html(*recording._shown()[:4])
    for shown in (text, page):
        assert "batches ahead" in shown
        assert "Use 4 workers" in shown
    assert "380*" in text
    assert "<b>380</b> ★" in page
    assert "<script" not in page.lower()
    recording.save(tmp_path / "run.ioscope.json")
    again = load(tmp_path / "run.ioscope.json")
    assert again.tunings == [found]
    assert again.figure("tuning").data
    assert str(again) == text
