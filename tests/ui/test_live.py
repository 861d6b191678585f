"""The panel in the side bar and the status bar: readings while they are seen, and only then."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.ui.harness import Lab
from tests.ui.test_report import show

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

COUNT = """
import threading
print(sum(t.name == 'ioscope-live-panel' for t in threading.enumerate()))
"""
# ends when the page's message has ended the thread: the test does not guess how long that takes
GONE = """
import threading, time
while any(t.name == 'ioscope-live-panel' for t in threading.enumerate()):
    time.sleep(0.02)
print('gone')
"""
LOADER = """
%load_ext ioscope
import torch
from torch.utils.data import DataLoader
loader = DataLoader(torch.arange(10_000_000))
"""
# waits for a file, so that the test decides when the cell ends
RECORDED = """%%ioscope --no-stacks
import os, time
for batch in loader:
    time.sleep(0.01)
    if os.path.exists('enough'):
        break
"""


def open_panel(lab: Lab) -> Locator:
    lab.command("ioscope:open-live")
    panel = lab.page.locator(".ioscope-live")
    panel.wait_for()
    return panel


def printed(lab: Lab, cell: int) -> Locator:
    return lab.page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea-output")


def test_the_panel_reads_the_kernel_while_it_is_open_and_only_then(lab: Lab) -> None:
    page = lab.page
    lab.write("live-panel.ipynb", COUNT, GONE)
    lab.open("live-panel.ipynb")
    panel = open_panel(lab)
    expect(panel).to_have_attribute("data-state", "absent")
    panel.get_by_role("button", name="Load ioscope").click()
    expect(panel).to_have_attribute("data-state", "live")
    expect(panel.locator("[data-key=memory]")).to_contain_text("MB")
    page.wait_for_function(
        "() => document.querySelector('[data-key=cpu] polyline')"
        "?.getAttribute('points').split(' ').length > 1"
    )
    expect(panel.locator("[data-key=throughput]")).to_contain_text("–")
    expect(panel).to_contain_text("run the cell under %%ioscope")
    lab.run_cell(0)
    expect(printed(lab, 0)).to_have_text("1")
    lab.screenshot("live-panel", ".ioscope-live")
    lab.command("application:toggle-right-area")
    panel.wait_for(state="hidden")
    lab.run_cell(1)
    expect(printed(lab, 1)).to_have_text("gone")
    assert lab.watch.errors == []
    assert lab.watch.outside == []


def test_a_profiled_cell_shows_in_panel_and_status_bar(lab: Lab) -> None:
    pytest.importorskip("torch")
    page = lab.page
    (lab.root / "enough").unlink(missing_ok=True)
    lab.write("status.ipynb", LOADER, RECORDED)
    lab.open("status.ipynb")
    panel = open_panel(lab)
    expect(panel).to_have_attribute("data-state", "absent")
    lab.run_cell(0)
    expect(panel).to_have_attribute("data-state", "live")  # found without being asked to look
    lab.run_cell(1)
    expect(page.locator(".ioscope-status")).to_contain_text("waiting for data")
    expect(panel.locator("[data-key=throughput]")).to_contain_text("batches/s")
    expect(panel.locator("[data-key=wait]")).to_contain_text("%")
    # a new line would not be answered before the cell has ended
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        lab.theme(theme)
        expect(panel.locator("[data-key=throughput]")).to_be_visible()
    look_away_and_back(lab)
    expect(panel.locator("[data-key=throughput]")).to_be_visible()
    (lab.root / "enough").touch()
    lab.wait_idle()
    expect(page.locator(".ioscope-status")).to_be_hidden()
    expect(panel.locator(".ioscope-profile-name")).to_have_count(1)
    assert lab.watch.errors == []


def look_away_and_back(lab: Lab) -> None:
    """As long as in a tab of the browser that is in the background, and a little."""
    lab.page.evaluate(
        """async () => {
            for (const hidden of [true, false]) {
                Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
                document.dispatchEvent(new Event('visibilitychange'));
                await new Promise(done => setTimeout(done, hidden ? 3500 : 0));
            }
        }"""
    )


# of the texts on what lies behind them; a text's colour may be see-through
CONTRAST = """
([texts, behind]) => {
    const rgba = text => text.match(/[0-9.]+/g).map(Number);
    const [r, g, b] = rgba(getComputedStyle(document.querySelector(behind)).backgroundColor);
    const light = parts => parts.map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    return [...document.querySelectorAll(texts)].map(element => {
        const [tr, tg, tb, alpha = 1] = rgba(getComputedStyle(element).color);
        const mixed = [[tr, r], [tg, g], [tb, b]].map(([t, p]) => t * alpha + p * (1 - alpha));
        const [low, high] = [light(mixed), light([r, g, b])].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    });
}
"""


def test_two_reports_are_ticked_and_compared(lab: Lab) -> None:
    page = lab.page
    slow = show(label="before", findings=[])
    lab.write("two.ipynb", slow, show(label="after"))
    lab.open("two.ipynb")
    lab.run_all()
    panel = open_panel(lab)
    names = panel.locator(".ioscope-profile-name")
    expect(names).to_have_text(["after", "before"])
    compare = panel.get_by_role("button", name="Compare two")
    expect(compare).to_be_disabled()
    for box in panel.get_by_role("checkbox").all():
        box.check()
    compare.click()
    pair = page.locator(".ioscope-pair")
    expect(pair.locator("h3").first).to_contain_text("A: before")
    expect(pair.locator("h3").nth(1)).to_contain_text("B: after")
    expect(pair).to_contain_text("not in A")
    assert pair.locator("table").count() > 1
    lab.screenshot("two-profiles", ".ioscope-pair")
    lab.theme("JupyterLab Dark")
    texts = ".ioscope-live :is(h3, p, label, .ioscope-profile-name)"
    contrasts = page.evaluate(CONTRAST, [texts, ".ioscope-live"])
    lab.screenshot("live-panel-dark", ".ioscope-live")
    lab.theme("JupyterLab Light")
    assert len(contrasts) > 4
    assert min(contrasts) >= 4.5
    assert lab.watch.errors == []
