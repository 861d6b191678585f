"""Takes the README's picture: runs the first tutorial in JupyterLab and photographs its report.

    make screenshot

Nothing is staged: the picture shows what this machine measured, with a comparison that was started
by the report's own button.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.ui.harness import CHROMIUM, Lab, chromium, jupyter, lab_page

FOLDER = Path(__file__).parent
PICTURE = FOLDER / "images" / "report.png"
TUTORIAL = "01_first_profile.ipynb"
PROFILED_CELL = "profile"  # its id
COLOURS = 128  # enough for a page, at a third of the bytes
TIMEOUT_MS = 240_000
HEIGHT_PIXELS = 3600  # the whole report at once
SELECT_THE_CELL_BELOW = """(id) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const ids = notebook.widgets.map(cell => cell.model.sharedModel.getId());
    notebook.activeCellIndex = ids.indexOf(id) + 1;
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
    print(PICTURE)
    return 0


def take(lab: Lab) -> None:
    """Run the tutorial up to its report, press *Run A/B* there, photograph down to the result."""
    lab.open(TUTORIAL)
    lab.page.evaluate(SELECT_THE_CELL_BELOW, PROFILED_CELL)
    lab.command("notebook:run-all-above")
    report = lab.page.locator(".ioscope-report").first
    report.wait_for()
    lab.wait_idle()
    report.locator("[data-toggle=draft_decode]").check()
    report.get_by_role("button", name="Run A/B").click()
    comparison = report.locator(".ioscope-comparison")
    comparison.wait_for()
    PICTURE.parent.mkdir(exist_ok=True)
    top, bottom = report.bounding_box(), comparison.bounding_box()
    if top is None or bottom is None:
        raise RuntimeError("the report is not on the screen")
    height = bottom["y"] + bottom["height"] - top["y"]
    lab.page.screenshot(path=PICTURE, clip={**top, "height": height})
    with Image.open(PICTURE) as picture:
        picture.quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
