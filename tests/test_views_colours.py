"""One palette, readable, and the same in Python and in the style sheet."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from jupyter_ioscope.model.diagnosis import PARTS
from jupyter_ioscope.views.colours import (
    INK,
    INK_SOFT,
    LIMITING,
    PAPER,
    PART_COLOURS,
    contrast,
    css_variable,
    ink_on,
    part_colour,
)

STYLE = Path(__file__).parent.parent / "labextension" / "style" / "report.css"


def test_every_part_has_a_colour_and_no_two_share_one() -> None:
    assert set(PART_COLOURS) == set(PARTS)
    assert len(set(PART_COLOURS.values())) == len(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_text_on_a_part_has_enough_contrast(part: str) -> None:
    colour = PART_COLOURS[part]
    assert contrast(ink_on(colour), colour) >= 4.5


def test_text_on_the_page_has_enough_contrast() -> None:
    assert contrast(INK, PAPER) >= 4.5
    assert contrast(INK_SOFT, PAPER) >= 4.5


def test_contrast_of_black_and_white_is_what_wcag_says() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def test_parts_drawn_beside_each_other_differ_in_more_than_hue() -> None:
    """Neighbours of a bar, in any combination, are told apart by lightness or by being grey."""
    usual = ("step", "cpu", "run_queue", "disk", "hand_over", "idle")
    for one, other in combinations(usual, 2):
        assert contrast(PART_COLOURS[one], PART_COLOURS[other]) > 1.02, (one, other)


def test_what_limits_has_a_colour_of_its_own_that_is_seen_on_light_and_dark_pages() -> None:
    assert LIMITING not in PART_COLOURS.values()
    for ground in (PAPER, "#0D1117", "#111111"):
        assert contrast(LIMITING, ground) >= 3  # WCAG 2.1, success criterion 1.4.11
    assert f"--ioscope-limiting: {LIMITING.lower()};" in STYLE.read_text("utf-8")


def test_an_unknown_part_looks_like_what_is_not_attributed() -> None:
    assert part_colour("new") == PART_COLOURS["rest"]


def test_the_style_sheet_defines_the_same_light_colours() -> None:
    style = STYLE.read_text("utf-8").lower()
    for part, colour in PART_COLOURS.items():
        found = re.search(rf"{css_variable(part)}:\s*(?:light-dark\()?(#[0-9a-f]{{6}})", style)
        assert found, part
        assert found.group(1) == colour.lower(), part
