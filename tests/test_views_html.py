"""The HTML runs nothing, loads nothing, escapes everything, and keeps its numbers without style."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Ceiling, Finding
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.views.html import comparison_html, report_html
from jupyter_ioscope.views.page import page
from tests import builders
from tests.view_values import HOSTILE, UNICODE, diagnosis, empty_diagnosis, profile

TAGS = {
    "b", "bdi", "br", "code", "div", "li", "p", "pre", "small", "span", "table", "td", "th", "tr",
    "ul",
}  # fmt: skip
ATTRIBUTES = {"style", "title", "width", "bgcolor"}
VOID = {"br", "meta"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that every tag is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.extend((name, value or "") for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader(html)
    assert reader.open == []
    return reader


def usual() -> str:
    return report_html(profile(), diagnosis(), builders.offers(), [builders.comparison(2.41)])


def hostile(text: str) -> str:
    finding = Finding(text, text, text, 0.5, 0.4, 0.6, 1.0, (text,), text, (), text)
    return report_html(
        builders.without(profile(), label=text, ended_by=text, not_measured=(Gap(text, text),)),
        diagnosis(
            headline=text,
            detail=text,
            findings=(finding,),
            separated=False,
            would_separate=text,
            ceilings=(Ceiling("cpu", text, 10, 9, 11, text),),
        ),
        [offer._replace(title=text, effect=text, cost=text) for offer in builders.offers()],
        [builders.comparison(2.41)],
        variable=text,
    )


ATTACKS = [
    HOSTILE,
    UNICODE,
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</td></table><iframe src='file:///etc/passwd'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "&lt;script&gt;",
    "<!-- --><style>*{display:none}</style>",
]


@pytest.mark.parametrize("html", [usual(), *map(hostile, ATTACKS)])
def test_only_plain_tags_and_attributes_are_used(html: str) -> None:
    reader = read(html)
    assert reader.tags <= TAGS
    assert {name for name, _ in reader.attributes} <= ATTRIBUTES
    styles = [value for name, value in reader.attributes if name == "style"]
    assert not any(re.search(r"url|expression|import|[<>{}@\\]", style) for style in styles)


@pytest.mark.parametrize("text", ATTACKS)
def test_names_are_shown_as_they_are_and_do_nothing(text: str) -> None:
    reader = read(hostile(text))
    first = text.split("\x1b")[0].split("\n")[0].strip()
    assert first in reader.text


def test_nothing_is_loaded_from_anywhere() -> None:
    without_script = page(profile(), diagnosis(), script=Path("absent.js"))
    assert not re.search(r"https?:|src=|href=|@import|url\(", usual() + without_script)


def test_every_number_stands_in_text_so_that_it_survives_without_style() -> None:
    text = read(re.sub(r' (?:style|bgcolor|width|title)="[^"]*"', "", usual())).text
    text = text.replace("\u00a0", " ")
    for words in (
        "The loop waited for data 81 % of the time.", "214 samples/s", "70 ± 1 %", "16 %", "5.0 %",
        "226 (214 – 239)", "limiting", "68 % (64 – 72 %)", "Decode fewer pixels.",
        "Decode at reduced size", "There is only one epoch.", "2.41 × faster", "1.00 GB",
        "Profiling itself used", "needs root", "_ioscope",
    ):  # fmt: skip
        assert words in text, words


def test_text_takes_the_colour_of_the_page_so_that_dark_pages_read() -> None:
    reader = read(usual())
    styles = [value for name, value in reader.attributes if name == "style"]
    coloured = [style for style in styles if re.search(r"(?<!-)color:", style)]
    assert coloured
    assert all("background-color:" in style for style in coloured)


@pytest.mark.parametrize("workers", [0, 2, 20])
def test_real_diagnoses_give_well_formed_html(workers: int) -> None:
    value = profile(workers, batches=60)
    assert "worker 0" in read(report_html(value, diagnose(value))).text or workers == 0


def test_an_empty_report_is_well_formed_too() -> None:
    assert "No verdict." in read(report_html(builders.empty_profile(), empty_diagnosis())).text


def test_it_stays_small() -> None:
    assert len(usual()) < 30_000
    value = profile(64, batches=100)
    assert len(report_html(value, diagnose(value))) < 40_000


def test_a_page_is_a_whole_document_with_its_encoding() -> None:
    html = page(builders.without(profile(), label="<b>"), diagnosis(headline=UNICODE))
    assert html.startswith('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">')
    assert "<title>ioscope: &lt;b&gt;</title>" in html
    assert UNICODE.split()[0] in html
    assert "light dark" in html


def test_a_comparison_alone_shows_both_arms_and_the_code() -> None:
    reader = read(comparison_html(builders.comparison(2.41)))
    assert "as it is" in reader.text
    assert "image.draft('RGB', (224, 224))" in reader.text


SCRIPT = 'document.title = "</script><b>"; // drawn'


def scripted(tmp_path: Path, **changes: Any) -> str:
    """A page whose script is `SCRIPT`."""
    script = tmp_path / "page.js"
    script.write_text(SCRIPT)
    value = builders.without(profile(), label=HOSTILE)
    return page(value, diagnosis(**changes), builders.offers(), script=script)


def test_a_page_carries_its_report_and_its_script_and_may_load_nothing(tmp_path: Path) -> None:
    html = scripted(tmp_path, headline=HOSTILE)
    data = re.search(r'id="ioscope-report-data">(.*?)</script>', html, re.DOTALL)
    assert data is not None
    report = json.loads(data.group(1))
    assert report["flames"]
    assert report["timeline"]["tracks"]
    assert [toggle["name"] for toggle in report["toggles"]]
    code = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert code == [SCRIPT.replace("</script", "<\\/script")]
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html
    assert f"script-src 'sha256-{digest}'" in html
    assert "<script>alert" not in html


def test_a_page_without_javascript_still_has_verdict_bars_findings_and_toggles(
    tmp_path: Path,
) -> None:
    html = scripted(tmp_path)
    static = html[html.index('id="ioscope-report-static"') : html.index("<script")]
    value = diagnosis()
    for text in (value.headline, value.findings[0].title, "Where the time went", "To try"):
        assert text in static


def test_a_page_of_a_checkout_that_was_not_built_runs_no_script() -> None:
    html = page(profile(), diagnosis(), script=Path("absent.js"))
    assert "<script" not in html
    assert "script-src 'none'" in html
