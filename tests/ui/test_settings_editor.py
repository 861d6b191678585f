"""Settings of JupyterLab's editor reach the magic; a cell's own words come first."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.harness import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

USED = "options = lambda c: (c.rate_hz, c.stacks)\nprint(options(_ioscope._options))"


def test_what_is_set_is_used_by_cells_that_say_nothing(lab: Lab) -> None:
    page = lab.page
    cells = ("%load_ext ioscope", "%%ioscope\n1", USED, "%%ioscope --rate 10 --stacks\n1", USED)
    lab.write("set.ipynb", *cells)
    lab.open("set.ipynb")
    lab.command("settingeditor:open", query="ioscope")
    page.locator("input[name$=_rateHz]").fill("50")
    page.locator("input[name$=_stacks]").uncheck()
    page.locator("select[name$=_colours]").select_option("dark")
    page.locator("body[data-ioscope-colours=dark]").wait_for(state="attached")
    lab.command("application:activate-previous-tab")
    lab.run_all()
    outputs = page.locator(".jp-Notebook .jp-OutputArea-output[data-mime-type*=stdout]")
    expect(outputs).to_have_text(["(50.0, False)", "(10.0, True)"])
    assert lab.watch.errors == []
