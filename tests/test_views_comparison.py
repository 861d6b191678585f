"""A comparison in words: the verdict, its doubt, and no claim that was not measured."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import pairwise
from typing import Any

import pytest

from jupyter_ioscope.model.comparison import VERDICTS, Comparison
from jupyter_ioscope.views.comparison import comparison_payload, headline
from tests import builders
from tests.view_values import HOSTILE


def changed(value: Comparison, **changes: Any) -> Comparison:
    return dataclasses.replace(value, **changes)


def text(value: Comparison) -> str:
    payload = comparison_payload(value)
    lines = (payload["headline"], *payload["lines"], *payload["how"])
    return "\n".join(lines).replace("\u00a0", " ")


def test_faster_and_slower_are_factors_above_one() -> None:
    assert headline(builders.comparison(2.41)) == "2.41 × faster"
    assert headline(builders.comparison(0.5, verdict="slower")) == "2.00 × slower"


def test_the_same_says_within_what() -> None:
    value = changed(builders.comparison(1.0, verdict="same"), ratio_low=0.97, ratio_high=1.02)
    assert headline(value).replace("\u00a0", " ") == "The same within 3.0 %"


def test_undecided_says_what_could_have_been_seen() -> None:
    value = changed(builders.comparison(1.05, verdict="undecided"), smallest_visible=0.12)
    assert (
        headline(value).replace("\u00a0", " ") == "Undecided: only more than 12 % would have shown"
    )
    assert headline(changed(value, smallest_visible=math.inf)) == "Undecided"


def test_too_few_pairs_are_said_to_be_too_few() -> None:
    value = builders.comparison(4.0, verdict="undecided", pairs=2)
    short = changed(
        value, ratio_low=0.0, ratio_high=math.inf, cpu_ratio_low=0.0, cpu_ratio_high=math.inf
    )
    words = text(short)
    assert "the time was enough for 2 pairs, and 4 are the least" in words
    assert "Measured × 4.00, in too few pairs" in words
    assert "∞" not in words
    # two pairs took 8 s, so four take 16 s
    assert "4 pairs take about 16 s here: compare with budget_s=60." in words


def test_different_data_is_the_headline_not_what_could_have_been_seen() -> None:
    value = builders.comparison(1.6, verdict="undecided")
    different = dataclasses.replace(value.same_data, verdict="different")
    assert "different data" in headline(changed(value, same_data=different))


def test_a_ratio_never_stands_without_its_interval() -> None:
    value = changed(builders.comparison(2.41), ratio_low=2.28, ratio_high=2.55)
    assert "95 % sure: × 2.28 to 2.55" in text(value)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (2.4, 2.2, 2.6, "CPU per sample: × 2.40 less (2.20 – 2.60)"),
        (0.5, 0.4, 0.625, "CPU per sample: × 2.00 more (1.60 – 2.50)"),
        (1.01, 0.9, 1.1, "CPU per sample: no difference seen (× 0.900 – 1.10)"),
    ],
)
def test_cpu_per_sample_has_a_direction_only_where_one_was_seen(
    ratio: float, low: float, high: float, words: str
) -> None:
    value = changed(builders.comparison(), cpu_ratio=ratio, cpu_ratio_low=low, cpu_ratio_high=high)
    assert words in text(value)


def test_circumstances_name_pairs_order_cache_isolation_and_others() -> None:
    shown = text(builders.comparison(2.0, pairs=12))
    for words in ("12 pairs of 2.0 s", "random order", "warm cache", "0.03", "forked child"):
        assert words in shown
    assert "Both arms delivered the same 256 samples." in shown


def test_what_decides_stands_first_and_how_it_was_measured_apart() -> None:
    payload = comparison_payload(builders.comparison(2.0, pairs=12))
    assert "Both arms delivered the same 256 samples." in payload["lines"]
    assert not any("random order" in line for line in payload["lines"])
    assert payload["how"][0].startswith("12 pairs")


def test_an_arm_in_the_kernel_is_named_so() -> None:
    assert "run in the kernel" in text(changed(builders.comparison(), isolation="in the kernel"))


def test_a_comparison_without_a_pair_shows_no_number() -> None:
    value = changed(
        builders.comparison(pairs=0, cancelled=True, verdict="undecided"),
        ratio=math.nan,
        ratio_low=math.nan,
        ratio_high=math.nan,
        cpu_ratio=math.nan,
        smallest_visible=math.inf,
    )
    value = changed(value, arms=tuple(dataclasses.replace(arm, trials=0) for arm in value.arms))
    assert headline(value) == "Cancelled before the first pair"
    assert "nan" not in text(value)
    assert "sure" not in text(value)
    json.dumps(comparison_payload(value), allow_nan=False)


def test_a_cancelled_comparison_says_that_it_is_not_whole() -> None:
    assert "Cancelled" in text(builders.comparison(cancelled=True))


def test_dots_and_ticks_share_an_axis_that_starts_at_zero() -> None:
    value = builders.comparison(2.41, pairs=12)
    payload = comparison_payload(value)
    assert len(payload["dots"]) == 24
    assert payload["ticks"][0] == {"x": 0.0, "text": "0"}
    assert payload["ticks"][-1]["x"] == 1.0
    top = float(payload["ticks"][-1]["text"].replace(",", ""))
    first = next(trial for trial in value.trials if trial.arm == "A")
    assert payload["dots"][0]["x"] == pytest.approx(first.samples_per_s / top, abs=1e-4)
    assert all(0 < dot["x"] <= 1 for dot in payload["dots"])


@pytest.mark.parametrize("base", [0.003, 0.7, 9.99, 100.0, 123_456.0])
def test_ticks_are_few_and_round_at_every_scale(base: float) -> None:
    ticks = comparison_payload(builders.comparison(1.5, base_per_s=base))["ticks"]
    assert 3 <= len(ticks) <= 8
    steps = {round(b["x"] - a["x"], 3) for a, b in pairwise(ticks)}
    assert max(steps) - min(steps) < 2e-3


def test_many_trials_do_not_make_the_report_large() -> None:
    payload = comparison_payload(builders.comparison(pairs=500))
    assert len(payload["dots"]) == 80
    assert len(json.dumps(payload)) < 8_000


@pytest.mark.parametrize("verdict", [*VERDICTS, "brilliant"])
def test_the_verdict_is_one_the_page_knows(verdict: str) -> None:
    assert comparison_payload(builders.comparison(verdict=verdict))["verdict"] in VERDICTS


def test_code_keeps_its_lines_and_names_lose_their_escapes() -> None:
    value = changed(builders.comparison(), code="a = 1\n\tb = 2\x1b[2J", notes=(HOSTILE,) * 50)
    payload = comparison_payload(value)
    assert payload["code"] == "a = 1\n    b = 2"
    assert len(payload["notes"]) == 8
    assert all(note.isprintable() for note in payload["notes"])
