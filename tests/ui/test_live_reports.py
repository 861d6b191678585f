"""Live reports through what happens to notebooks: closed and opened again, deleted, killed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.harness import Lab
from tests.ui.test_kernel_versions import REPORT

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SAID = "print(said)"
DIE = "import os; os._exit(1)"


def test_a_comparison_outlives_its_page(lab: Lab) -> None:
    page = lab.page
    lab.write("outlives.ipynb", REPORT, "report('one')", SAID)
    lab.open("outlives.ipynb")
    lab.run_all()
    page.get_by_role("button", name="Run A/B").click()
    expect(page.locator(".ioscope-progress")).to_contain_text("pair 1 of 9")
    lab.command("docmanager:save")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    lab.command("application:close")
    page.locator(".jp-Notebook").wait_for(state="detached")
    lab.command("docmanager:open", path="outlives.ipynb")
    progress = page.locator(".ioscope-progress")
    expect(progress).to_contain_text("pair 1 of 9")  # told by the kernel, not kept by the page
    page.get_by_role("button", name="Cancel").click()
    expect(progress).to_contain_text("Cancelled.")
    assert lab.watch.errors == []


def test_a_report_deleted_while_it_compares_leaves_the_kernel_alone(lab: Lab) -> None:
    page = lab.page
    lab.write("deleted.ipynb", REPORT, "report('one')", SAID)
    lab.open("deleted.ipynb")
    lab.run_all()
    page.get_by_role("button", name="Run A/B").click()
    expect(page.locator(".ioscope-progress")).to_contain_text("pair 1 of 9")
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    lab.command("notebook:delete-cell")
    page.locator(".ioscope-report").wait_for(state="detached")
    lab.run_last()
    page.get_by_text("[('one', 'run_ab')]").wait_for()
    assert page.locator("[data-mime-type*=stderr]").count() == 0
    assert lab.watch.errors == []


def test_a_report_whose_kernel_dies_says_what_would_help(lab: Lab) -> None:
    page = lab.page
    lab.write("dies.ipynb", REPORT, "report('one')", DIE)
    lab.open("dies.ipynb")
    lab.run_cell(0)
    lab.run_cell(1)
    run = page.get_by_role("button", name="Run A/B")
    expect(run).to_be_enabled()
    run.click()
    expect(page.locator(".ioscope-progress")).to_contain_text("pair 1 of 9")
    lab.run_cell(2)
    page.get_by_text("To try a fix, run the cell again").wait_for()
    expect(run).to_be_disabled()


def test_a_comparison_is_run_with_the_keyboard_alone(lab: Lab) -> None:
    page = lab.page
    lab.write("keyboard.ipynb", REPORT, "report('one')", "1")
    lab.open("keyboard.ipynb")
    lab.run_cell(0)
    lab.run_cell(1)
    run = page.get_by_role("button", name="Run A/B")
    expect(run).to_be_enabled()
    page.locator(".ioscope-report [data-toggle]:enabled").first.focus()
    for _ in range(200):  # to the button as a reader gets there
        if run.evaluate("button => button === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".ioscope-progress")).to_contain_text("pair 1 of 9")
    page.get_by_role("button", name="Cancel").focus()
    page.keyboard.press("Enter")
    tune = page.get_by_role("button", name="Tune")
    expect(tune).to_be_enabled()
    tune.focus()
    page.keyboard.press("Space")
    expect(page.locator(".ioscope-progress")).to_contain_text("tune: pair 1 of 9")
    page.locator(".jp-Cell").nth(2).click()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Alt+p")
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[2]"
        ".model.sharedModel.getSource().startsWith('%%ioscope')"
    )
    lab.wait_idle()
    assert lab.watch.errors == []
