"""Profile files in JupyterLab: two side by side, and files that mean harm."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.ui.harness import Lab
from tests.ui.test_report import FIXTURE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

ATTACK = (
    "<img src=x onerror='window.attacked = 1'><script>window.attacked = 1</script>"
    "<svg onload='window.attacked = 1'>\"'`javascript:window.attacked=1"
)


def write(lab: Lab, name: str, **changes: object) -> None:
    report = {**json.loads(FIXTURE.read_text()), **changes}
    (lab.root / name).write_text(json.dumps({"profile": {}, "report": report}))


def hostile(value: Any, key: str = "") -> Any:
    """`value` with an attack in every text, and still a report: words with a meaning stay."""
    if isinstance(value, dict):
        return {name: hostile(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, key) for item in value]
    keeps = key in ("verdict", "times", "name", "reportId")
    return f"{value} {ATTACK}" if isinstance(value, str) and not keeps else value


def choose(lab: Lab, *names: str) -> Locator:
    """Select files in the file browser and find the entry of the menu on the last one."""
    items = [lab.page.locator(f".jp-DirListing-item[title*='{name}']") for name in names]
    for number, item in enumerate(items):
        item.click(modifiers=["Control"] if number else [])
    items[-1].click(button="right")
    return lab.page.locator(".lm-Menu-item", has_text="Compare profiles")


def test_two_files_are_chosen_and_shown_side_by_side(lab: Lab) -> None:
    write(lab, "before.ioscope.json", headline="It waited 81 % of the time.")
    write(lab, "after.ioscope.json", headline="It waited 3 % of the time.", findings=[])
    lab.start()
    choose(lab, "after.ioscope.json", "before.ioscope.json").click()
    pair = lab.page.locator(".ioscope-pair")
    expect(pair).to_contain_text("It waited 81 % of the time.")
    expect(pair).to_contain_text("It waited 3 % of the time.")
    expect(pair.locator("canvas")).to_have_count(1)
    lab.screenshot("two-files", ".ioscope-pair")
    assert lab.watch.errors == []


def test_one_file_is_dropped_onto_the_other(lab: Lab) -> None:
    write(lab, "onto.ioscope.json", headline="The one that was open.")
    write(lab, "dropped.ioscope.json", headline="The one that was dropped.")
    lab.visit("onto.ioscope.json")
    open_one = lab.page.locator(".jp-MimeDocument .ioscope-report")
    open_one.wait_for()
    lab.command("filebrowser:refresh")
    mouse = lab.page.mouse
    lab.page.locator(".jp-DirListing-item[title*='dropped']").hover()
    mouse.down()
    box = open_one.bounding_box()
    assert box is not None
    mouse.move(box["x"] + 60, box["y"] + 30, steps=8)
    mouse.move(box["x"] + 90, box["y"] + 60, steps=4)
    mouse.up()
    names = lab.page.locator(".ioscope-pair h3")
    expect(names.first).to_contain_text("A: onto.ioscope.json")
    expect(names.nth(1)).to_contain_text("B: dropped.ioscope.json")


def test_a_damaged_file_is_named_when_two_are_compared(lab: Lab) -> None:
    write(lab, "whole.ioscope.json")
    (lab.root / "damaged.ioscope.json").write_text('{"report": {"headl')
    lab.start()
    choose(lab, "whole.ioscope.json", "damaged.ioscope.json").click()
    lab.page.get_by_text("damaged.ioscope.json: This file is damaged or cut off").first.wait_for()
    assert lab.page.locator(".ioscope-pair").count() == 0


def test_files_that_mean_harm_run_nothing(lab: Lab) -> None:
    report = hostile(json.loads(FIXTURE.read_text()))
    for name in ("harm-1.ioscope.json", "harm-2.ioscope.json"):
        write(lab, name, **report)
    lab.visit("harm-1.ioscope.json")
    shown = lab.page.locator(".jp-MimeDocument .ioscope-report")
    expect(shown.locator(".ioscope-headline").first).to_contain_text("<img src=x")
    shown.evaluate("e => e.querySelectorAll('details').forEach(d => { d.open = true; })")
    lab.command("filebrowser:refresh")
    choose(lab, "harm-1.ioscope.json", "harm-2.ioscope.json").click()
    pair = lab.page.locator(".ioscope-pair")
    expect(pair.locator(".ioscope-headline").first).to_contain_text("<img src=x")
    for place in (shown, pair):
        assert place.locator("img, script, iframe, object, [onerror], [onload], a").count() == 0
    assert lab.page.evaluate("() => window.attacked") is None
    assert lab.watch.errors == []
    assert lab.watch.outside == []
