"""Intervals and the way from a batch to its fetch."""

from __future__ import annotations

import random

from jupyter_ioscope.diagnosis.phases import Lookup, clip, made_by, subtract, total_ns, union
from tests import builders


def test_union_joins_what_overlaps_and_drops_what_is_empty() -> None:
    assert union([(5, 9), (0, 3), (2, 4), (7, 7)]) == [(0, 4), (5, 9)]


def test_subtract_and_overlap_make_up_the_whole() -> None:
    rng = random.Random(1)
    for _ in range(200):
        a, b = (
            union((s, s + rng.randrange(1, 9)) for s in rng.sample(range(60), 6)) for _ in range(2)
        )
        left = subtract(a, b)
        brute = {t for s, e in a for t in range(s, e)} - {t for s, e in b for t in range(s, e)}
        assert {t for s, e in left for t in range(s, e)} == brute
        assert total_ns(left) == len(brute)


def test_clip_keeps_only_what_lies_between() -> None:
    assert clip([(0, 5), (6, 9), (20, 30)], 4, 8) == [(4, 5), (6, 8)]


def test_lookup_finds_the_interval_around_an_instant() -> None:
    lookup = Lookup([(0, 5), (10, 12)])
    assert [lookup.index(t) for t in (0, 4, 5, 9, 11, 12)] == [0, 0, -1, -1, 1, -1]


def test_every_batch_finds_the_fetch_that_made_it() -> None:
    for workers in (0, 1, 3):
        profile = builders.profile(workers, batches=20, epochs=2)
        made = made_by(profile.batches, profile.fetches)
        assert len(made) == 40
        for row in profile.batches:
            fetch = made[row.batch]
            assert (fetch.epoch, fetch.task) == (row.epoch, row.task)
            assert fetch.end_ns <= row.wait_end_ns


def test_batches_without_records_are_left_out() -> None:
    profile = builders.with_workers_before_profile(builders.profile(batches=10))
    assert made_by(profile.batches, profile.fetches) == {}
