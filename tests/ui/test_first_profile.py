"""The whole path in a browser: profile, read the verdict, try a fix, cancel it, try it again."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from jupyter_ioscope.views.shapes import MIME
from tests.ui.harness import Lab

pytest.importorskip("torch")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# One worker that sleeps: a second one doubles the throughput on any machine with two cores, and
# how busy the machine is changes little.
SETUP = """
%load_ext ioscope
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 2_000

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((8,), float(index))

loader = DataLoader(Slow(), batch_size=8, num_workers=1)
"""
LOOP = """%%ioscope
end = time.monotonic() + 3
for batch in loader:
    if time.monotonic() > end:
        break
"""
TOTAL_WIDTH = "bar => [...bar.children].reduce((sum, e) => sum + parseFloat(e.style.width), 0)"
COMPARISON_TIMEOUT_MS = 150_000
CANCEL_TIMEOUT_MS = 20_000


def test_profile_cancel_compare_and_take_the_code(lab: Lab) -> None:
    lab.write("first.ipynb", SETUP, LOOP, "print('the kernel is free')")
    lab.open("first.ipynb")
    lab.run_all()
    read_the_verdict(lab)
    choose_only(lab, "workers")
    cancel_a_comparison(lab)
    finish_a_comparison(lab)
    find_it_in_the_saved_notebook(lab)
    insert_the_code(lab)
    lab.screenshot("first-profile")
    assert lab.watch.errors == []
    assert lab.watch.outside == []


def read_the_verdict(lab: Lab) -> None:
    report = lab.page.locator(".ioscope-report")
    headline = report.locator(".ioscope-headline").first
    expect(headline).to_contain_text(re.compile(r"waited for data \d+(\.\d)?\s%"))
    expect(report.locator(".ioscope-detail")).to_contain_text(re.compile("sleep", re.I))
    bars = report.locator(".ioscope-bars .ioscope-row-label")
    expect(bars).to_have_text(["consumer", "worker 0", "feeder threads"])
    widths = report.locator(".ioscope-track").nth(1).evaluate(TOTAL_WIDTH)
    assert widths == pytest.approx(100, abs=2)
    assert report.locator(".ioscope-flame canvas").count() == 1


UNFOLD = "box => { const list = box.closest('details'); if (list) list.open = true; }"


def choose_only(lab: Lab, toggle: str) -> None:
    for box in lab.page.locator("[data-toggle]:enabled").all():
        name = (box.get_attribute("data-toggle") or "").partition("=")[0]  # workers=2
        if box.is_checked() != (name == toggle):
            box.evaluate(UNFOLD)
            box.set_checked(name == toggle)


def cancel_a_comparison(lab: Lab) -> None:
    page = lab.page
    progress = page.locator(".ioscope-progress")
    page.get_by_role("button", name="Run A/B").click()
    expect(progress).to_have_attribute("data-state", "running")
    lab.run_last()  # the kernel is free meanwhile
    page.get_by_role("button", name="Cancel").click()
    expect(progress).to_have_attribute("data-state", "cancelled", timeout=CANCEL_TIMEOUT_MS)
    expect(page.get_by_role("button", name="Run A/B")).to_be_enabled()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()


def finish_a_comparison(lab: Lab) -> None:
    page = lab.page
    shown = page.locator(".ioscope-comparison").count()  # a cancelled one may tell what it saw
    page.get_by_role("button", name="Run A/B").click()
    results = page.locator(".ioscope-comparison")
    expect(results).to_have_count(shown + 1, timeout=COMPARISON_TIMEOUT_MS)
    newest = results.first
    assert newest.get_attribute("data-verdict") == "faster"
    ratio = re.search(r"(\d+\.\d+)", newest.locator(".ioscope-headline").inner_text())
    assert ratio is not None
    assert float(ratio[1]) > 1.2
    expect(newest.locator("tbody tr")).to_have_count(2)
    assert newest.locator("circle").count() >= 4


def find_it_in_the_saved_notebook(lab: Lab) -> None:
    page = lab.page
    expect(page.locator(".ioscope-progress")).to_have_attribute("data-state", "done")
    lab.command("docmanager:save")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    saved = json.loads((lab.root / "first.ipynb").read_text())
    outputs = [output.get("data", {}) for output in saved["cells"][1]["outputs"]]
    (report,) = [data for data in outputs if MIME in data]
    assert report[MIME]["comparisons"][-1]["verdict"] == "faster"
    assert report[MIME]["flames"]  # what was tried takes no room from what can be dug in
    assert "× faster" in "".join(report["text/html"]).replace("\u00a0", " ")


def insert_the_code(lab: Lab) -> None:
    before = lab.sources()
    newest = lab.page.locator(".ioscope-comparison").first
    newest.get_by_role("button", name="Insert code").click()
    after = lab.sources()
    assert [*after[:2], *after[3:]] == before
    assert "num_workers" in after[2]
    compile(after[2], "inserted", "exec")
