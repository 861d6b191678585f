"""Saved pages in a real browser, without a server: the report drawn offline, selected by mouse and
keys, with JavaScript and without, whatever is in the profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.difference import Difference
from jupyter_ioscope.views.page import SCRIPT, page, page_of
from jupyter_ioscope.views.payload import report_payload
from tests import builders
from tests.test_views_flame_waits import waiting
from tests.ui.harness import Watch
from tests.ui.timings import BRUSH, REDRAW, unfold, wide_flame
from tests.view_values import HOSTILE, UNICODE, profile

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

HUNDRED_THOUSAND = 100_000
ATTACK = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"


@pytest.fixture(scope="module")
def report_of_waiting() -> Any:
    value = waiting()
    offers, tried = builders.offers(), [builders.comparison()]
    return report_payload(value, diagnose(value), offers, tried, variable="")


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Writes HTML to a file and opens it; checks that nothing left the page and nothing failed."""
    if not SCRIPT.is_file():
        pytest.fail("the page's script is not built: cd labextension && jlpm build:page")
    contexts: list[BrowserContext] = []
    watch = Watch()

    def opened(html: str, **options: Any) -> Page:
        path = tmp_path / "page.html"
        path.write_text(html, "utf-8")
        context = browser.new_context(viewport={"width": 1120, "height": 1400}, **options)
        contexts.append(context)
        made = context.new_page()
        watch.attach(made)
        made.goto(path.as_uri())
        return made

    yield opened
    for context in contexts:
        context.close()
    assert watch.errors == []
    assert [url for url in watch.outside if not url.startswith("file:")] == []


def bar_texts(made: Page) -> list[str | None]:
    bars = made.locator(".ioscope-track").all()
    return [bar.get_attribute("aria-label") for bar in bars]


def test_a_page_shows_three_things_and_folds_the_rest(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    titles = made.locator(".ioscope-section:not(.ioscope-deep) > h3").all_text_contents()
    assert titles[:3] == ["Where the time went", "What holds it back", "Try it"]
    folded = made.locator(".ioscope-deep")
    assert folded.count() == 3
    assert not made.locator(".ioscope-flame canvas").is_visible()
    assert made.locator("#ioscope-report-static").count() == 0
    assert all(folded.nth(n).get_attribute("open") is None for n in range(3))


def test_without_javascript_verdict_bars_and_findings_stand(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting), java_script_enabled=False)
    static = made.locator("#ioscope-report-static")
    for text in (report_of_waiting["headline"], "Where the time went", "Findings", "To try"):
        assert static.get_by_text(text).first.is_visible()


def test_a_span_chosen_by_mouse_shows_everywhere_and_goes_with_a_click(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Timeline")
    unfold(made, "Flame graph")
    made.get_by_role("tab", name="workers by state").click()
    whole = bar_texts(made)
    area = made.locator(".ioscope-brush").bounding_box()
    assert area is not None
    y = area["y"] + 30
    made.mouse.move(area["x"] + 0.2 * area["width"], y)
    made.mouse.down()
    made.mouse.move(area["x"] + 0.4 * area["width"], y, steps=3)
    made.mouse.up()
    assert bar_texts(made) != whole
    chosen = made.locator(".ioscope-brush-line [role=status]").text_content() or ""
    assert chosen.startswith("Selected: ")
    span = chosen.removeprefix("Selected: ").split(". Bars")[0]
    for place in (".ioscope-bars > .ioscope-note", ".ioscope-flames > [role=status]"):
        assert span in (made.locator(place).first.text_content() or "")
    assert span in (made.locator(".ioscope-batches [role=status]").text_content() or "")
    made.get_by_role("tab", name="workers merged").click()
    assert "whole run" in (made.locator(".ioscope-flames > [role=status]").text_content() or "")
    made.get_by_role("button", name="Whole run").click()
    assert bar_texts(made) == whole


def test_a_span_is_chosen_by_keys_alone(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Timeline")
    whole = bar_texts(made)
    start = made.get_by_role("slider", name="start of the selected part of the run")
    end = made.get_by_role("slider", name="end of the selected part of the run")
    start.focus()
    for key in ("PageUp", "ArrowRight"):
        made.keyboard.press(key)
    end.focus()
    made.keyboard.press("PageDown")
    assert (start.get_attribute("aria-valuenow"), end.get_attribute("aria-valuenow")) == ("6", "35")
    assert start.get_attribute("aria-valuetext") == report_of_waiting["spans"]["marks"][6]
    assert bar_texts(made) != whole
    made.keyboard.press("Escape")
    assert bar_texts(made) == whole


def test_the_words_of_a_frame_are_inside_a_graph_however_low_it_is(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Flame graph")
    made.locator(".ioscope-flame canvas").focus()
    words = made.locator(".ioscope-tooltip")
    # what reaches beyond the box would make it scroll
    beyond = "() => (b => b.scrollHeight - b.clientHeight)(document.querySelector('{}'))"
    for _ in range(5):
        made.keyboard.press("ArrowDown")
        assert words.is_visible()
        assert made.evaluate(beyond.format(".ioscope-flame-box")) <= 1


def test_what_is_drawn_of_a_state_inverted_and_as_a_table(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Flame graph")
    made.get_by_role("tab", name="workers by state").click()
    made.locator(".ioscope-select").select_option("waiting for files and disks")
    for name in ("Inverted", "Own code", "Table"):
        made.get_by_role("button", name=name).click()
    cells = made.locator(".ioscope-function-table td").all_text_contents()
    assert "rows" in cells
    assert "running" not in cells
    assert "[page fault]" not in cells


def test_a_speedscope_file_is_saved_without_a_request(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Flame graph")
    with made.expect_download() as download:
        made.get_by_role("button", name="Speedscope").click()
    document = json.loads(Path(download.value.path()).read_text())
    assert [one["name"] for one in document["profiles"]] == [
        flame["label"] for flame in report_of_waiting["flames"]
    ]


def hostile() -> Profile:
    value = profile(2, batches=20)
    assert value.stacks is not None
    frames = tuple(row._replace(name=ATTACK + HOSTILE, file=ATTACK) for row in value.stacks.frames)
    stacks = builders.without(value.stacks, frames=frames)  # type: ignore[arg-type]
    return builders.without(value, label=ATTACK, stacks=stacks)


ODD: dict[str, Callable[[], Profile]] = {
    "hostile": hostile,
    "one batch": lambda: profile(1, batches=1),
    "256 workers": lambda: profile(256, batches=300),
    "no stacks": lambda: builders.without(profile(), stacks=None),
    "nothing": lambda: builders.empty_profile(),
    "other scripts": lambda: builders.without(profile(), label=UNICODE),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_profiles_are_drawn_and_run_nothing(open_page: Callable[..., Page], name: str) -> None:
    value = ODD[name]()
    made = open_page(page(value, diagnose(value), builders.offers()))
    assert made.locator(".ioscope-headline").first.is_visible()
    for section in made.locator(".ioscope-deep > summary").all():
        section.click()
    assert made.locator(".ioscope-error").count() == 0
    assert made.locator(".ioscope-report :is(img, script, iframe)").count() == 0
    assert made.evaluate("() => window.attacked") is None
    assert made.evaluate("() => document.body.scrollWidth <= window.innerWidth")


CONTRASTS = """() => {
    const numbers = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
    // colours of every notation as sRGB, painted by the browser itself
    const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
        .getContext('2d', {willReadFrequently: true});
    const rgb = colours => {
        pen.clearRect(0, 0, 1, 1);
        for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const found = [];
    let checked = 0;
    for (const element of document.querySelectorAll('.ioscope-report *')) {
        const words = [...element.childNodes].filter(n => n.nodeType === 3 && n.data.trim());
        if (!words.length || !element.checkVisibility() || element.disabled
            || element.closest('[disabled], .ioscope-hidden')) continue;
        const grounds = [];
        for (let at = element; at; at = at.parentElement) {
            grounds.unshift(getComputedStyle(at).backgroundColor);
        }
        const canvas = matchMedia('(prefers-color-scheme: dark)').matches ? '#121212' : '#ffffff';
        const ground = rgb([canvas, ...grounds]);
        const ink = rgb([canvas, ...grounds, getComputedStyle(element).color]);
        const [low, high] = [light(ground), light(ink)].sort((a, b) => a - b);
        checked += 1;
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) found.push([words[0].data.trim().slice(0, 30), element.className, ratio]);
    }
    return [checked, found];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(
    open_page: Callable[..., Page], report_of_waiting: Any, scheme: Any
) -> None:
    made = open_page(page_of(report_of_waiting), color_scheme=scheme)
    for section in made.locator(".ioscope-report summary").all():
        if section.is_visible():
            section.click()
    checked, unreadable = made.evaluate(CONTRASTS)
    assert unreadable == []
    assert checked > 100


NAMELESS = """async () => {
    // what overflows is told with the next frame
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const within = selector => [...document.querySelectorAll(`.ioscope-report ${selector}`)]
        .filter(element => element.checkVisibility());
    const named = element => element.getAttribute('aria-label') || element.labels?.length
        || element.title || element.textContent.trim();
    const reached = element => element.tabIndex >= 0
        || element.querySelector('button, input, canvas, select, [tabindex="0"]');
    const scrolls = element => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX)
        && element.scrollWidth > element.clientWidth + 1;
    const rooms = within('.ioscope-scroll, pre');
    const ids = within('[id]').map(element => element.id);
    const told = 'button, input, select, canvas, th, [role=img], [role=slider], [role=group]';
    return {
        checked: within(told).length,
        scrolling: within('*').filter(scrolls).length,
        nameless: within(told).filter(element => !named(element)).map(e => e.outerHTML),
        unreached: within('*').filter(e => scrolls(e) && !reached(e)).map(e => e.outerHTML),
        resting: rooms.filter(e => !scrolls(e)).length,
        stops: rooms.filter(e => !scrolls(e) && e.tabIndex >= 0).map(e => e.outerHTML),
        twice: ids.filter((id, at) => ids.indexOf(id) !== at),
        landmarks: within(':is(header, footer, main, nav, section[aria-label])').length,
    };
}"""


def test_everything_has_a_name_and_what_scrolls_and_nothing_else_of_it_is_reached_by_keys(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    for section in made.locator(".ioscope-report summary").all():
        if section.is_visible():
            section.click()
    wide = made.evaluate(NAMELESS)
    made.set_viewport_size({"width": 420, "height": 1400})  # so that tables are wider than it
    narrow = made.evaluate(NAMELESS)
    assert wide.pop("resting") > narrow.pop("resting")
    assert narrow.pop("scrolling") > wide.pop("scrolling")
    for found in (wide, narrow):
        assert found.pop("checked") > 50
        assert found == {
            "nameless": [], "unreached": [], "stops": [], "twice": [], "landmarks": 0
        }  # fmt: skip


def test_two_profiles_against_each_other_are_drawn_in_the_colours_of_change(
    open_page: Callable[..., Page],
) -> None:
    before = builders.profile(workers=2, hot="decode", fetch_ms=50.0)
    after = builders.profile(workers=2, hot="resize", fetch_ms=50.0)
    made = open_page(page_of(Difference(before, after).report()))
    canvas = made.locator(".ioscope-flame canvas")
    canvas.wait_for()
    colours = canvas.evaluate(
        """canvas => {
            const {width, height} = canvas;
            const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
            const warm = [], cold = [];
            for (let i = 0; i < data.length; i += 4) {
                if (data[i] - data[i + 2] > 60) warm.push(i);
                if (data[i + 2] - data[i] > 60) cold.push(i);
            }
            return [warm.length, cold.length];
        }"""
    )
    assert min(colours) > 500


@pytest.mark.alone
def test_a_hundred_times_the_frames_take_no_hundred_times_as_long(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    def redrawn_ms(frames: int) -> float:
        made = open_page(page_of(report_of_waiting | {"flames": [wide_flame(frames)]}))
        unfold(made, "Flame graph")
        canvas = made.locator(".ioscope-flame canvas")
        canvas.wait_for()
        return float(canvas.evaluate(REDRAW))

    # about ten times; other programs interrupt a long drawing more often than a short one
    few, many = redrawn_ms(HUNDRED_THOUSAND // 100), redrawn_ms(HUNDRED_THOUSAND)
    assert many < 50 * max(few, 0.5)


@pytest.mark.alone
def test_the_selection_answers_at_once(
    open_page: Callable[..., Page], report_of_waiting: Any
) -> None:
    made = open_page(page_of(report_of_waiting))
    unfold(made, "Timeline")
    unfold(made, "Flame graph")
    made.get_by_role("tab", name="workers by state").click()
    drawn = made.evaluate(
        """() => {
            const timing = performance.getEntriesByType('navigation')[0];
            return timing.domComplete - timing.responseEnd;
        }"""
    )
    assert made.evaluate(BRUSH) < 2 * max(drawn, 5.0)
