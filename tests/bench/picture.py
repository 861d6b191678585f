"""How fast a report is drawn in Chromium, and how large the front end is.

Each is the smallest of several: other programs of the machine can only lengthen it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.views.page import SCRIPT, page_of
from jupyter_ioscope.views.payload import report_payload
from tests import builders
from tests.bench.measure import print_result
from tests.test_views_flame_waits import waiting
from tests.ui.harness import BUILT, chromium
from tests.ui.timings import BRUSH, PAINT, REDRAW, unfold, wide_flame

RUNS, QUICK_RUNS = 7, 3
FRAMES = 100_000


def measure(quick: bool) -> dict[str, Any]:
    value = waiting()
    offers, tried = builders.offers(), [builders.comparison()]
    report = report_payload(value, diagnose(value), offers, tried, variable="")
    pages = {
        "paint": page_of(report),
        "draw": page_of(report | {"flames": [wide_flame(FRAMES)]}),  # type: ignore[arg-type]
    }
    found: dict[str, list[float]] = {"paint_ms": [], "draw_ms": [], "brush_ms": []}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for name, html in pages.items():
            Path(folder, f"{name}.html").write_text(html, "utf-8")
        for _ in range(QUICK_RUNS if quick else RUNS):
            page = browser.new_page(viewport={"width": 1120, "height": 1400})
            page.goto(Path(folder, "paint.html").as_uri())
            found["paint_ms"].append(page.evaluate(PAINT))
            unfold(page, "Timeline")
            unfold(page, "Flame graph")
            page.get_by_role("tab", name="workers by state").click()
            found["brush_ms"].append(page.evaluate(BRUSH))
            page.goto(Path(folder, "draw.html").as_uri())
            unfold(page, "Flame graph")
            canvas = page.locator(".ioscope-flame canvas")
            canvas.wait_for()
            found["draw_ms"].append(canvas.evaluate(REDRAW))
            page.close()
    scripts = sum(path.stat().st_size for path in BUILT.rglob("*.js"))
    sizes = {"extension_bytes": scripts, "page_bytes": SCRIPT.stat().st_size}
    return {**{name: min(values) for name, values in found.items()}, **sizes}


if __name__ == "__main__":
    print_result(measure, __doc__)
