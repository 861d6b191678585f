"""The report in a terminal: verdict first, narrow, complete, and obeying nobody."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import replace

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Ceiling, Diagnosis, Finding, Waits
from jupyter_ioscope.model.profile import Gap, Profile
from jupyter_ioscope.views.text import WIDTH, comparison_text, live_line, report_text
from jupyter_ioscope.views.words import columns_of
from tests import builders
from tests.view_values import (
    HOSTILE,
    UNICODE,
    diagnosis,
    empty_diagnosis,
    is_inert,
    profile,
    thread,
    waits,
)


def shown(value: Profile, verdict: Diagnosis) -> str:
    text = report_text(value, verdict, builders.offers(), [builders.comparison(2.41)])
    return text.replace("\u00a0", " ")


def test_the_verdict_is_the_first_line() -> None:
    assert shown(profile(), diagnosis()).startswith("The loop waited for data 81 % of the time.\n")


def test_everything_a_user_asked_for_is_there() -> None:
    text = shown(profile(), diagnosis())
    for words in (
        "214 samples/s", "to the first batch", "peak memory", "read from disk", "GPU busy",
        "consumer", "worker 0", "worker 1", "CPU 70 ± 1 %", "Ceilings", "2 workers", "limiting",
        "68 % (64 – 72 %)", "1,203 of 1,770 samples", "decode in In [4], line 12",
        "Decode at reduced size (draft_decode)",
        "does not apply: persistent_workers: There is only one epoch.",
        "2.41 × faster", "95 % sure", "image.draft('RGB', (224, 224))",
        "Profiling itself used", "block-layer latency: needs root", "The profile is in _ioscope.",
    ):  # fmt: skip
        assert words in text, words


PROFILES = {
    "usual": profile(),
    "no workers": profile(0),
    "many workers": profile(20, batches=60),
    "records only": builders.profile(tier="in_process"),
    "zero batches": builders.profile(batches=0),
    "nothing": builders.empty_profile(),
}


@pytest.mark.parametrize("name", PROFILES)
def test_no_line_is_wider_than_a_hundred_columns(name: str) -> None:
    value = PROFILES[name]
    lines = shown(value, diagnose(value)).split("\n")
    assert max(map(columns_of, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines if not line.startswith("  "))


@pytest.mark.parametrize("text", [HOSTILE, UNICODE, UNICODE.replace(" ", "") * 20])
def test_hostile_and_foreign_names_neither_widen_nor_command_the_terminal(text: str) -> None:
    finding = Finding(text, text, text, 0.5, 0.4, 0.6, 1.0, (text,), text, (), text)
    value = builders.without(profile(), label=text, ended_by=text, not_measured=(Gap(text, text),))
    verdict = diagnosis(
        headline=text,
        detail=text,
        findings=(finding,) * 7,
        separated=False,
        would_separate=text,
        ceilings=(Ceiling("cpu", text, 10, 9, 11, text),),
    )
    shown_text = shown(value, verdict)
    assert max(map(columns_of, shown_text.split("\n"))) <= WIDTH
    assert is_inert(shown_text)


def test_an_empty_report_is_still_a_report() -> None:
    text = report_text(builders.empty_profile(), empty_diagnosis())
    assert text.startswith("No verdict.\n")
    assert "Where the time went" not in text
    assert "Ceilings" not in text


def test_words_of_ceilings_are_whole_and_bars_get_what_room_is_left() -> None:
    label = "taking batches over + your step"
    known = (
        Ceiling("consumer", label, 178.4, 139.1, 245.2, ""),
        Ceiling("hand_over", "feeder threads", 2788.1, 1871.2, 15466.3, ""),
    )
    lines = shown(profile(), diagnosis(ceilings=known)).split("\n")
    low, high = (next(line for line in lines if name in line) for name in (label, "feeder threads"))
    assert low.endswith("limiting")
    assert high.endswith("(1,871 – 15,466), beyond this scale")
    assert high.count("░") > 3 * low.count("█") > 0


def bars(text: str) -> list[str]:
    return re.findall(r"^  \S.*?\[(.{32})\]", text, re.MULTILINE)


def test_bars_are_equally_long_and_their_signs_are_the_shares() -> None:
    rows = Waits(thread(step=0.25, idle=0.75, rest=0.0), (thread(0, cpu=1.0, rest=0.0),), 0.7, 0.0)
    found = bars(shown(profile(), diagnosis(waits=rows)))
    assert found == ["▒" * 8 + "·" * 24, "█" * 32]


def test_a_bar_with_many_small_parts_stays_within_its_frame() -> None:
    small = thread(0, cpu=0.16, run_queue=0.16, disk=0.16, page_fault=0.16, network=0.16, gil=0.16)
    rows = Waits(None, (small,), 0.7, 0.0)
    assert len(bars(shown(profile(), diagnosis(waits=rows)))) == 1


def test_signs_in_bars_are_explained() -> None:
    text = shown(profile(), diagnosis(waits=waits(2)))
    for words in ("▒ training step", "█ CPU", "▚ waiting for a core", "· no batch ready, idle"):
        assert words in text


def test_what_was_left_out_is_counted() -> None:
    finding = diagnosis().findings[0]
    text = shown(profile(), diagnosis(findings=(finding,) * 8))
    assert "and 3 more in _ioscope.diagnosis.findings" in text


def test_causes_that_cannot_be_told_apart_are_named_so() -> None:
    text = shown(profile(), diagnosis(separated=False, would_separate="a run with 4 workers"))
    assert "Not told apart: a run with 4 workers" in text


def test_a_comparison_alone_has_both_arms_in_one_table() -> None:
    text = comparison_text(builders.comparison(2.41)).replace("\u00a0", " ")
    assert text.startswith("A/B: draft decode: 2.41 × faster\n")
    assert re.search(r"^  A  as it is +[\d.]+ ± [\d.]+ .*1\.7 s +1\.00 GB +8$", text, re.MULTILINE)
    assert re.search(r"^  B  draft decode ", text, re.MULTILINE)
    assert max(map(columns_of, text.split("\n"))) <= WIDTH


def test_code_of_a_winner_keeps_its_lines_as_they_are() -> None:
    code = "if fast:\n    loader = DataLoader(\n        dataset,\n\n    )"
    text = comparison_text(replace(builders.comparison(2.41), code=code))
    assert textwrap.indent(code, "    ") in text
    long = "loader = DataLoader(" + ", ".join(f"{name}=1" for name in "abcdefghijklmnopqrstuvw")
    text = comparison_text(replace(builders.comparison(2.41), code=f"    {long}"))
    assert max(map(columns_of, text.split("\n"))) <= WIDTH


def test_the_live_line_reads_at_a_glance() -> None:
    text = live_line(12.34, 0.81, 5.2).replace("\u00a0", " ")
    assert text == "ioscope: 12.3 batches/s · waiting for data 81 % of the time · 5.2 s"


@pytest.mark.parametrize(
    "values", [(0, 0, 0), (math.nan, math.nan, 1), (-1, -1, -1), (math.inf, 2, 3)]
)
def test_the_live_line_never_shows_a_number_that_is_none(
    values: tuple[float, float, float],
) -> None:
    text = live_line(*values)
    assert "nan" not in text
    assert "inf" not in text
    assert "\n" not in text


def test_the_live_line_caps_a_share_at_the_whole() -> None:
    assert "100" in live_line(3.0, 1.7, 5.0)
    assert "–" in live_line(3.0, math.nan, 5.0)
