"""How long a page takes to answer, as scripts for the browser; for tests and `make bench`."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page


def unfold(made: Page, title: str) -> Locator:
    section = made.locator(f".ioscope-deep[data-section='{title}']")
    section.locator("summary").first.click()
    return section


def wide_flame(frames: int) -> dict[str, Any]:
    """A flame graph of `frames` frames: forty rows of equal ones."""
    rows = 40
    each = (frames - 1) // rows
    depth = [0] + [1 + row for row in range(rows) for _ in range(each)]
    x0 = [0.0] + [n / each for _ in range(rows) for n in range(each)]
    x1 = [1.0] + [(n + 1) / each for _ in range(rows) for n in range(each)]
    names = [f"function_{n}" for n in range(500)]
    return {
        "key": "wide", "label": "wide", "samples": frames, "names": names, "details": names,
        "kinds": [n % 3 for n in range(500)], "name": [n % 500 for n in range(len(depth))],
        "depth": depth, "x0": x0, "x1": x1,
    }  # fmt: skip


# milliseconds of one whole redraw: Escape shows all, and draws before it returns
REDRAW = """canvas => {
    const press = () => canvas.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
    const pen = canvas.getContext('2d');
    const once = () => {
        const began = performance.now();
        press();
        pen.getImageData(0, 0, 1, 1);  // waits until it is painted
        return performance.now() - began;
    };
    return Math.min(...Array.from({length: 7}, once));
}"""


# milliseconds of a change of the selection, layout included, over those of drawing the report
BRUSH = """() => {
    const end = document.querySelector('[role=slider]');
    const steps = [];
    for (let n = 0; n < 9; n++) {
        const began = performance.now();
        end.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
        document.body.getBoundingClientRect();
        steps.push(performance.now() - began);
    }
    return steps.sort((a, b) => a - b)[4];
}"""

# milliseconds from the data's arrival until the report is drawn and laid out, drawn once more
PAINT = """async () => {
    const data = document.getElementById('ioscope-report-data');
    const code = [...document.scripts].find(one => !one.type).textContent;
    const old = document.querySelector('.ioscope-report').parentElement;
    const place = Object.assign(document.createElement('div'), {id: 'ioscope-report-static'});
    old.replaceWith(place);
    const began = performance.now();
    const script = Object.assign(document.createElement('script'), {textContent: code});
    document.body.append(script);
    document.body.getBoundingClientRect();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
}"""
