"""Takes the README's pictures: runs the first tutorial in JupyterLab and photographs its report.

    make screenshot

Nothing is staged: the pictures show what this machine measured, with a comparison that was started
by the report's own button, and the panel beside a cell that runs. Each is taken in JupyterLab's
light theme and in its dark one; the README shows the one that suits its reader's page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator

from tests.ui.harness import CHROMIUM, Lab, chromium, jupyter, lab_page

FOLDER = Path(__file__).parent
PICTURES = FOLDER / "images"
TUTORIAL = "01_first_profile.ipynb"
PROFILED_CELL = "profile"  # its id
COLOURS = 128  # enough for a page, at a third of the bytes
TIMEOUT_MS = 240_000
HEIGHT_PIXELS = 3600  # the whole report at once
PANEL_HEIGHT_PIXELS = 720
PANEL_MS = 2_000  # so that its lines have a length to be seen, while the cell still runs
MARGIN_PIXELS = 8
THEMES = {"": "JupyterLab Light", "-dark": "JupyterLab Dark"}  # ends of the files' names
THEME_MS = 700  # its style sheet comes with one of the next frames, and canvases after it
SELECT = """(id, below) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const ids = notebook.widgets.map(cell => cell.model.sharedModel.getId());
    notebook.activeCellIndex = ids.indexOf(id) + below;
}"""


def main() -> int:
    if CHROMIUM is None:
        print("chromium is not installed", file=sys.stderr)
        return 1
    scratch = Path(tempfile.mkdtemp(prefix="ui-"))  # short, for the sockets of kernels
    files, home = scratch / "files", scratch / "home"
    try:
        files.mkdir()
        home.mkdir()
        for name in (TUTORIAL, "photos.py"):
            shutil.copy(FOLDER / name, files)
        with (
            jupyter(files, home) as url,
            chromium() as browser,
            lab_page(browser, url, files) as lab,
        ):
            lab.page.set_default_timeout(TIMEOUT_MS)
            lab.page.set_viewport_size({"width": 1280, "height": HEIGHT_PIXELS})
            take(lab)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(PICTURES)
    return 0


def take(lab: Lab) -> None:
    """Run the tutorial up to its report and press *Run A/B* there; then look at the details, and
    at the panel while the cell runs again."""
    lab.open(TUTORIAL)
    lab.page.evaluate(f"({SELECT})('{PROFILED_CELL}', 1)")
    lab.command("notebook:run-all-above")
    report = lab.page.locator(".ioscope-report").first
    report.wait_for()
    lab.wait_idle()
    report.locator("[data-toggle=draft_decode]").check()
    report.get_by_role("button", name="Run A/B").click()
    comparison = report.locator(".ioscope-comparison")
    comparison.wait_for()
    photograph(lab, "report", report, comparison)
    sections = [report.locator(f"[data-section='{name}']") for name in ("Timeline", "Flame graph")]
    for section in sections:
        section.locator("summary").first.click()
    sections[1].locator("canvas").wait_for()
    photograph(lab, "details", *sections)
    take_panel(lab)


def take_panel(lab: Lab) -> None:
    """In each theme beside a run of the cell: one run is too short for both."""
    lab.page.set_viewport_size({"width": 1280, "height": PANEL_HEIGHT_PIXELS})
    lab.command("ioscope:open-live")
    panel = lab.page.locator(".ioscope-live")
    panel.wait_for()
    for ending, theme in THEMES.items():
        lab.theme(theme)
        lab.page.evaluate(f"({SELECT})('{PROFILED_CELL}', 0)")
        lab.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-cell')")
        panel.locator("[data-key=throughput]").filter(has_text="/s").wait_for()
        lab.page.wait_for_timeout(PANEL_MS)
        shoot(lab, PICTURES / f"panel{ending}.png", panel, panel)
        lab.wait_idle()


def photograph(lab: Lab, name: str, first: Locator, last: Locator | None = None) -> None:
    """From the top of one element to the bottom of the other, in both themes."""
    PICTURES.mkdir(exist_ok=True)
    for ending, theme in THEMES.items():
        lab.theme(theme)
        lab.page.wait_for_timeout(THEME_MS)
        first.evaluate("element => element.scrollIntoView()")  # the page is as high as both
        shoot(lab, PICTURES / f"{name}{ending}.png", first, last or first)


def shoot(lab: Lab, path: Path, first: Locator, last: Locator) -> None:
    top, bottom = first.bounding_box(), last.bounding_box()
    if top is None or bottom is None:
        raise RuntimeError(f"{path.name}: what it shows is not on the screen")
    height = bottom["y"] + bottom["height"] - top["y"] + MARGIN_PIXELS
    lab.page.screenshot(path=path, clip={**top, "height": height})
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1)
        few.save(path, optimize=True)  # kmeans: dark areas get a tint without it


if __name__ == "__main__":
    sys.exit(main())
