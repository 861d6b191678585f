"""What the buttons of a report find stays in its output, which is saved with the notebook."""

from __future__ import annotations

import threading
from typing import Any

import IPython.display
import pytest

from jupyter_ioscope import interactive
from jupyter_ioscope.interactive import ReportOnScreen, show
from jupyter_ioscope.recording import Recording
from jupyter_ioscope.views.shapes import MIME
from tests import builders
from tests.test_views_tuning import tuning
from tests.view_values import profile


class Notebook:
    """A notebook with one output: what `display` puts there, and what later takes its place."""

    def __init__(self) -> None:
        self.shown: dict[str, Any] = {}
        self.said: list[str] = []
        self.broken = False

    def display(self, bundle: dict[str, Any], **how: Any) -> None:
        assert how["raw"]
        self.shown[how["display_id"]] = bundle

    def update_display(self, bundle: dict[str, Any], **how: Any) -> None:
        if self.broken:
            raise ConnectionError("the page is gone")
        assert how["display_id"] in self.shown
        self.said.append("kept")
        self.display(bundle, **how)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setattr(interactive, "in_kernel", lambda: True)
    for name in ("display", "update_display"):
        monkeypatch.setattr(IPython.display, name, getattr(made, name))
    return made


@pytest.fixture
def report(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> ReportOnScreen:
    """A report that is shown, whose comparisons and searches take no time."""
    shown: list[ReportOnScreen] = []

    class Watched(ReportOnScreen):
        def __init__(self, recording: Recording) -> None:
            super().__init__(recording)
            shown.append(self)

        def _say(self, state: str, text: str, fraction: float) -> None:
            notebook.said.append(state)

    def compare(own: Recording, *_: Any, **__: Any) -> Any:
        own.results.append(builders.comparison(2.41))
        return own.results[-1]

    def tune(own: Recording, *_: Any, **__: Any) -> Any:
        own.results.append(tuning())
        return own.results[-1]

    monkeypatch.setattr(interactive, "ReportOnScreen", Watched)
    monkeypatch.setattr(Recording, "compare", compare)
    monkeypatch.setattr(Recording, "tune", tune)
    show(Recording.of(profile()))
    return shown[0]


def pressed(report: ReportOnScreen, command: dict[str, Any]) -> None:
    """Press a button and wait until what it started has ended."""
    report.command(command)
    for thread in threading.enumerate():
        if thread.name == "ioscope-ab":
            thread.join(20)


def test_a_comparison_is_put_into_the_output_in_all_its_forms(
    notebook: Notebook, report: ReportOnScreen
) -> None:
    (before,) = notebook.shown.values()
    assert before[MIME]["comparisons"] == []
    pressed(report, {"cmd": "run_ab", "toggles": ["workers"]})
    (after,) = notebook.shown.values()
    assert len(after[MIME]["comparisons"]) == 1
    assert after[MIME]["reportId"] == before[MIME]["reportId"]
    for form in ("text/html", "text/plain"):
        assert "2.41\u00a0× faster" in after[form] or "2.41 × faster" in after[form]
    # the buttons are free only when a second press would not be lost
    assert notebook.said == ["running", "kept", "done"]


def test_a_search_is_put_there_with_its_settings(
    notebook: Notebook, report: ReportOnScreen
) -> None:
    pressed(report, {"cmd": "tune"})
    (after,) = notebook.shown.values()
    assert after[MIME]["comparisons"][-1]["grid"]["columns"] == ["0", "1", "2", "4"]
    for form in ("text/html", "text/plain"):
        assert "batches ahead" in after[form]
        assert "380" in after[form]


def test_an_output_that_cannot_be_changed_hinders_nothing(
    notebook: Notebook, report: ReportOnScreen
) -> None:
    notebook.broken = True
    for _ in range(2):
        pressed(report, {"cmd": "run_ab", "toggles": ["workers"]})
    assert notebook.said == ["running", "done"] * 2
