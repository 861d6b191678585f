"""The same report where the extension is missing (anywidget), and in Notebook 7."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ui.harness import EXTENSION, Lab, jupyter, lab_page
from tests.ui.test_report import FIXTURE, show

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

# Notebook 7.6 raises it while it starts, also with no extension installed
NOTEBOOKS_OWN_ERROR = "Cannot read properties of undefined (reading 'schema')"

WIDGET = """
import json, pathlib, anywidget, traitlets
import jupyter_ioscope
report = json.loads(open({fixture!r}).read())
class Report(anywidget.AnyWidget):
    _esm = pathlib.Path(jupyter_ioscope.__file__).parent / "static" / "widget.js"
    report = traitlets.Dict().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    comparisons = traitlets.List().tag(sync=True)
    def received(self, _, command, buffers):
        self.progress = {{"state": "running", "text": command["cmd"], "fraction": 0.5}}
widget = Report(report=report)
widget.on_msg(widget.received)
widget
"""


@pytest.fixture
def folders(notebooks: Path) -> tuple[Path, Path]:
    """Files and home of a server; others at a second try."""
    files, home = (tempfile.mkdtemp(prefix=name, dir=notebooks) for name in ("files-", "home-"))
    return Path(files), Path(home)


@pytest.fixture
def lab_without_extension(browser: Browser, folders: tuple[Path, Path]) -> Iterator[Lab]:
    files, home = folders
    with (
        jupyter(files, home, disabled=[EXTENSION]) as url,
        lab_page(browser, url, files) as lab,
    ):
        yield lab


@pytest.fixture
def notebook_7(browser: Browser, folders: tuple[Path, Path]) -> Iterator[Lab]:
    pytest.importorskip("notebook", minversion="7")
    files, home = folders
    with jupyter(files, home, "notebook") as url, lab_page(browser, url, files) as lab:
        yield lab


def test_the_widget_works_without_the_extension(lab_without_extension: Lab) -> None:
    lab = lab_without_extension
    lab.write("widget.ipynb", WIDGET.format(fixture=str(FIXTURE)))
    lab.open("widget.ipynb")
    lab.run_all()
    run = lab.page.get_by_role("button", name="Run A/B")
    expect(run).to_be_enabled()
    lab.screenshot("widget")
    run.click()
    expect(lab.page.locator(".ioscope-progress")).to_contain_text("run_ab")
    assert lab.page.locator(".ioscope-flame canvas").count() == 1
    assert lab.watch.errors == []


def test_notebook_7_draws_reports_and_has_the_button(notebook_7: Lab) -> None:
    lab = notebook_7
    twice = f"{show()}\n{show()}"  # so long that Notebook makes a slot
    lab.write("seven.ipynb", twice, "value = 6 * 7")
    lab.page.goto(f"{lab.url}/notebooks/seven.ipynb")
    lab.page.wait_for_function(
        "() => window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')"
    )
    lab.wait_idle()
    lab.run_all()
    lab.page.locator(".ioscope-deep[data-section='Flame graph'] > summary").first.click()
    lab.page.locator(".ioscope-flame canvas").first.wait_for()
    lab.screenshot("notebook-7")
    # read as a page, not through the slot that Notebook makes of long outputs
    slot = lab.page.locator(".jp-mod-outputsScrolled .jp-Cell-outputArea").first
    assert slot.evaluate("area => getComputedStyle(area).overflowY") == "visible"
    report = lab.page.locator(".ioscope-report").first.bounding_box()
    around = slot.bounding_box()
    assert report is not None
    assert around is not None
    assert around["height"] >= report["height"]
    lab.page.locator(".jp-Cell").nth(1).click()
    lab.command("ioscope:profile-cell")
    lab.wait_idle()
    assert lab.sources()[1].startswith("%%ioscope\n")
    lab.command("ioscope:open-live")
    panel = lab.page.locator(".ioscope-live")
    expect(panel).to_have_attribute("data-state", "live")
    expect(panel.locator(".ioscope-profile-name")).not_to_have_count(0)
    assert [error for error in lab.watch.errors if error != NOTEBOOKS_OWN_ERROR] == []
