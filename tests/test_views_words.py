"""Text from a profile is inert and fits where it is shown."""

from __future__ import annotations

import pytest

from jupyter_ioscope.model.diagnosis import PARTS
from jupyter_ioscope.views.words import (
    PART_LABELS,
    clean,
    clean_lines,
    columns_of,
    fit,
    wrap,
)
from tests.view_values import HOSTILE, UNICODE


def test_every_part_has_a_label_of_its_own() -> None:
    assert set(PART_LABELS) == set(PARTS)
    assert len(set(PART_LABELS.values())) == len(PARTS)


def test_terminal_escapes_controls_and_direction_overrides_are_taken_out() -> None:
    text = clean(HOSTILE)
    assert text.isprintable()
    assert "[31m" not in text
    assert "\u202e" not in text
    assert '<script>alert("x")</script> &' in text, "markup is the HTML view's business"


@pytest.mark.parametrize(
    "text",
    ["\x1b]0;title\x07shown", "\x1b]8;;file:///x\x1b\\shown", "\x1b[2J\x1b[Hshown", "\x9bshown"],
)
def test_operating_system_and_cursor_sequences_leave_the_text_only(text: str) -> None:
    assert clean(text) == "shown"


def test_an_unfinished_escape_sequence_does_not_survive() -> None:
    assert "\x1b" not in clean("a\x1b")
    assert "\x1b" not in clean("a\x1b[")


def test_letters_of_all_scripts_stay() -> None:
    assert clean(UNICODE) == UNICODE


def test_a_name_that_is_no_text_becomes_replacement_characters() -> None:
    assert clean(b"photo_\xff.jpg".decode("utf-8", "surrogateescape")) == "photo_\ufffd.jpg"


def test_lines_are_joined_or_kept() -> None:
    assert clean("one\r\ntwo\u2028three") == "one two three"
    assert clean_lines("one\r\n\ttwo\x00\x0bthree") == "one\n    two\nthree"


def test_a_long_name_is_cut_with_an_ellipsis() -> None:
    assert clean("x" * 1000, 10) == "x" * 9 + "…"


def test_wide_and_combining_characters_count_as_a_terminal_draws_them() -> None:
    assert columns_of("データ") == 6
    assert columns_of("e\u0301") == 1
    assert columns_of(fit("データ読込データ", 7)) <= 7


@pytest.mark.parametrize("text", [UNICODE * 5, "word " * 50, "x" * 333, HOSTILE, " leading"])
@pytest.mark.parametrize("width", [20, 100])
def test_wrapped_lines_keep_the_width_and_every_letter(text: str, width: int) -> None:
    lines = wrap(text, width, "  - ", "    ")
    assert all(columns_of(line) <= width for line in lines)
    joined = "".join(lines).replace(" ", "")
    assert joined == "-" + text.replace(" ", "")


def test_nothing_wraps_to_no_line() -> None:
    assert wrap("", 80) == []
