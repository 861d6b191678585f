"""The HTML of an output by itself, as hosts without our script show it: in a frame that may run
nothing and load nothing, in both colour schemes, and where even styles are taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import pytest
from playwright.sync_api import Browser, FrameLocator

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.views.html import report_html
from tests import builders
from tests.test_views_flame_waits import waiting
from tests.ui.harness import Watch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

STYLED = "default-src 'none'; style-src 'unsafe-inline'"
BARE = "default-src 'none'"
HOST = """<!doctype html><html style="color-scheme:{scheme}"><body style="margin:0">
<iframe sandbox="allow-scripts" style="width:900px;height:2000px;border:0;color-scheme:{scheme}"
 srcdoc="{inside}"></iframe></body></html>"""
INSIDE = """<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="{rules}">
<style>:root{{color-scheme:{scheme}}} body{{font-family:sans-serif}}</style></head>
<body>{output}</body></html>"""
# of the first bar: what part of its width each cell takes, beside what its title says
CELLS = """table => {
    const whole = table.getBoundingClientRect().width;
    return [...table.rows[0].cells].map(cell =>
        [cell.getBoundingClientRect().width / whole, cell.title, cell.bgColor]);
}"""
BAR = "td > table"  # a bar is the only table inside another


@pytest.fixture
def alone(browser: Browser) -> Iterator[Callable[..., tuple[FrameLocator, Watch]]]:
    """Shows the HTML of a report in such a frame."""
    made = []

    def shown(scheme: Any = "light", rules: str = STYLED) -> tuple[FrameLocator, Watch]:
        profile = waiting()
        diagnosis = diagnose(profile)
        offers, tried = builders.offers(), [builders.comparison()]
        output = report_html(profile, diagnosis, offers, tried)
        inside = INSIDE.format(rules=rules, scheme=scheme, output=output)
        context = browser.new_context(color_scheme=scheme, viewport={"width": 920, "height": 2000})
        made.append(context)
        page = context.new_page()
        watch = Watch()
        watch.attach(page)
        page.set_content(HOST.format(scheme=scheme, inside=escape(inside)))
        return page.frame_locator("iframe"), watch

    yield shown
    for context in made:
        context.close()


def headline() -> str:
    return str(diagnose(waiting()).headline)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_frame_that_runs_nothing_shows_verdict_bars_findings_and_fixes(
    alone: Callable[..., tuple[FrameLocator, Watch]], scheme: str
) -> None:
    frame, watch = alone(scheme)
    for text in (headline(), "Where the time went", "To try"):
        assert frame.get_by_text(text).first.is_visible()
    bar = frame.locator(BAR).first
    for width, title, _ in bar.evaluate(CELLS):
        assert width > 0
        assert title
    assert frame.locator("script, iframe, img, link, [onclick], [src]").count() == 0
    wide = (
        "e => e.ownerDocument.documentElement.scrollWidth <= e.ownerDocument.body.clientWidth + 20"
    )
    assert frame.locator("body").evaluate(wide)
    ink = frame.locator("b").first.evaluate("e => getComputedStyle(e).color")
    assert (ink == "rgb(0, 0, 0)") == (scheme == "light")  # the page's own colour
    assert watch.errors == []
    assert watch.outside == []


def test_where_styles_are_removed_bars_keep_their_widths_and_colours(
    alone: Callable[..., tuple[FrameLocator, Watch]],
) -> None:
    styled = alone()[0].locator(BAR).first.evaluate(CELLS)
    bare = alone(rules=BARE)[0].locator(BAR).first.evaluate(CELLS)
    assert len(styled) == len(bare) > 1
    for (width, title, colour), (bare_width, bare_title, bare_colour) in zip(
        styled, bare, strict=True
    ):
        assert bare_width == pytest.approx(width, abs=0.1)
        assert (title, colour) == (bare_title, bare_colour)
        assert colour.startswith("#")
