"""What a selection adds up: batches once each, thousandths that fill, little text."""

from __future__ import annotations

import json

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.waits import waits_of
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.bars import wait_bars
from jupyter_ioscope.views.bundle import LIMIT_BYTES, mime_bundle, saved_bytes
from jupyter_ioscope.views.shapes import MIME, ISpans
from jupyter_ioscope.views.spans import STRETCHES, spans
from tests import builders
from tests.view_values import profile


def unpacked(text: str) -> list[int]:
    return [int(word) for word in text.split(" ")]


def spans_of(value: Profile) -> ISpans:
    found = spans(value, waits_of(value))
    assert found is not None
    return found


def test_every_batch_and_sample_is_counted_once() -> None:
    value = profile(2, epochs=2, batches=70)
    found = spans_of(value)
    assert sum(unpacked(found["batches"])) == len(value.batches) == 140
    assert sum(unpacked(found["samples"])) == sum(row.samples for row in value.batches)
    counts = [unpacked(row) for row in found["waits"]["counts"]]
    assert sum(map(sum, counts)) == 140
    assert [sum(column) for column in zip(*counts, strict=True)] == unpacked(found["batches"])
    assert len(found["waits"]["edges"]) == len(counts) + 1


@pytest.mark.parametrize("workers", [0, 1, 2, 8, 30])
def test_there_is_a_row_for_every_bar_and_it_says_what_the_bar_says(workers: int) -> None:
    value = profile(workers, batches=60, states={"cpu": 0.6, "disk": 0.4})
    waits = waits_of(value)
    bars, found = wait_bars(waits), spans_of(value)
    assert len(found["rows"]) == len(bars)
    for bar, row in zip(bars, found["rows"], strict=True):
        times = {part["name"]: sum(unpacked(part["times"])) for part in row["parts"]}
        whole = sum(times.values())
        for part in bar["parts"] if times else ():
            assert times[part["name"]] / whole == pytest.approx(part["fraction"], abs=0.02)
    assert found["rows"][0]["parts"]


def test_marks_stand_at_both_ends_and_between_all_stretches() -> None:
    found = spans_of(profile())
    assert len(found["marks"]) == STRETCHES + 1
    assert found["marks"][0].startswith("0")


def test_nothing_iterated_gives_no_stretches() -> None:
    empty = builders.empty_profile()
    assert spans(empty, waits_of(empty)) is None


def many_batches(count: int) -> Profile:
    """A run of `count` batches: one of a hundred, again and again."""
    value = profile(2, batches=100, states={"cpu": 0.6, "disk": 0.4})
    span, start = value.wall_ns, value.start_ns
    batches = [
        row._replace(
            batch=n,
            task=n,
            wait_start_ns=row.wait_start_ns + at,
            wait_end_ns=row.wait_end_ns + at,
            step_end_ns=row.step_end_ns + at,
        )
        for at, n, row in ((span * (n // 100), n, value.batches[n % 100]) for n in range(count))
    ]
    end_ns = start + span * (count // 100)
    return builders.without(value, batches=tuple(batches), end_ns=end_ns)


@pytest.mark.timeout(120)
def test_many_batches_stay_a_small_output() -> None:
    few = profile(2, batches=100, states={"cpu": 0.6, "disk": 0.4})
    judged = diagnose(few)
    value = many_batches(20_000)
    made = mime_bundle(value, judged, builders.offers(), [builders.comparison()])
    assert saved_bytes(made) <= LIMIT_BYTES
    report = made[MIME]
    assert sum(unpacked(report["spans"]["batches"])) == 20_000
    assert len(json.dumps(report["spans"])) < 12_000
