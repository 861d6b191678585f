"""Rules about what items are made of: they name their cause, and keep quiet on look-alikes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import GcPause, ImageSize, LineCalls, SamplesAgain
from jupyter_ioscope.model.profile import Profile
from tests import builders
from tests import work_values as values

SMALL: dict[str, Any] = {"batch_bytes": 8 * 2_000, "fetch_ms": 16.0, "step_ms": 0.5}
PHOTO: dict[str, Any] = {"batch_bytes": 8 * 150_528, "fetch_ms": 160.0, "step_ms": 0.5}


def first(made: Profile) -> Finding:
    return diagnose(made).findings[0]


def causes(made: Profile) -> set[str]:
    return {row.cause for row in diagnose(made).findings}


@pytest.mark.parametrize("workers", [0, 2])
def test_parsing_text_is_named_instead_of_cpu(workers: int) -> None:
    made = values.profile((values.JSON, 50), (values.USER, 10), workers=workers, **SMALL)
    assert first(made).cause == "text_parse_per_item"
    assert not {"decode_cpu", "no_workers_cpu_bound"} & causes(made)
    assert "store arrays" in first(made).advice
    assert "Items.__getitem__" in first(made).where


def test_a_little_parsing_is_not_the_trouble() -> None:
    made = values.profile((values.JSON, 3), (values.USER, 97), **SMALL)
    assert "text_parse_per_item" not in causes(made)
    assert first(made).cause == "no_workers_cpu_bound"


def test_parsing_under_a_heavy_step_is_not_the_trouble() -> None:
    made = values.profile((values.JSON, 60), workers=2, fetch_ms=4.0, step_ms=20.0)
    assert causes(made) == {"not_loader_bound"}


def test_what_only_first_fetches_do_is_start_up() -> None:
    made = values.profile((values.JSON, 20), (values.USER, 40), **SMALL)
    early = made.fetches[0].start_ns - 1_000_000_000
    rows = (made.fetches[0]._replace(start_ns=early), *made.fetches[1:])
    assert "text_parse_per_item" in causes(made)
    assert "text_parse_per_item" not in causes(builders.without(made, fetches=rows))


def test_tensors_out_of_parsed_lists_belong_to_the_parsing() -> None:
    calls = (LineCalls(values.GET.file, values.GET.line, ("torch.tensor",)),)
    made = values.profile((values.JSON, 30), ((values.GET,), 30), **SMALL)
    found = first(builders.without(made, calls=calls))
    assert found.cause == "text_parse_per_item"
    assert found.share > 0.8


def test_rows_of_a_data_frame() -> None:
    assert (
        first(values.profile((values.PANDAS, 40), (values.USER, 10), **SMALL)).cause
        == "pandas_row_access"
    )


def test_many_rows_of_a_data_frame_at_once_are_no_trouble() -> None:
    quick: dict[str, Any] = {
        "batch_size": 2048,
        "fetch_ms": 4.0,
        "batch_bytes": 2048 * 64,
        "step_ms": 3.0,
    }
    assert "pandas_row_access" not in causes(values.profile((values.PANDAS, 40), **quick))


TINY: dict[str, Any] = {
    "batch_size": 1024,
    "batch_bytes": 1024 * 40,
    "fetch_ms": 12.0,
    "step_ms": 0.5,
}


def test_tiny_items_got_one_by_one() -> None:
    made = values.profile(((values.COLLATE,), 20), ((), 20), collate_fraction=0.5, **TINY)
    found = first(made)
    assert found.cause == "per_sample_fetch"
    assert "__getitems__" in found.advice


def test_tiny_items_got_at_once_are_no_trouble() -> None:
    quick: dict[str, Any] = {**TINY, "fetch_ms": 0.2, "step_ms": 1.0}
    assert "per_sample_fetch" not in causes(values.profile((values.USER, 10), **quick))


def test_items_that_are_worked_on_are_not_tiny() -> None:
    made = values.profile((values.JSON, 30), ((values.COLLATE,), 10), **TINY)
    assert "per_sample_fetch" not in causes(made)


@pytest.mark.parametrize("pause_ms", [1, 9])
def test_the_collector_runs_for_tiny_items_unless_it_is_most_of_the_fetching(pause_ms: int) -> None:
    made = values.profile(((), 40), **TINY)
    pauses = tuple(
        GcPause(row.pid, -1, row.start_ns, row.start_ns + pause_ms * 1_000_000, 2, 0)
        for row in made.fetches
    )
    found = causes(builders.without(made, gc_pauses=pauses))
    assert "per_sample_fetch" in found
    assert ("gc_pauses" in found) == (pause_ms == 9)


JOINING: dict[str, Any] = {"collate_fraction": 0.8, "fetch_ms": 20.0, "step_ms": 0.5}


def test_joining_through_lists_is_slow() -> None:
    made = values.profile(((values.OWN_JOIN,), 40), collate="own", batch_bytes=500_000, **JOINING)
    assert first(made).cause == "slow_collate"


def test_one_stack_of_large_tensors_is_not_slow() -> None:
    made = values.profile(((values.COLLATE,), 40), batch_bytes=8 * 600_000, **JOINING)
    assert "slow_collate" not in causes(made)


def test_joining_at_the_speed_of_memory_is_not_slow() -> None:
    made = values.profile(
        ((values.OWN_JOIN,), 40), collate="own", batch_bytes=40_000_000, **JOINING
    )
    assert "slow_collate" not in causes(made)


def photos(width: int, height: int, *rows: values.Row, **settings: Any) -> Profile:
    made = values.profile(
        *(rows or ((values.JPEG, 40), (values.RESIZE, 10))), **{**PHOTO, **settings}
    )
    return builders.without(made, images=(ImageSize("/data/1.jpg", width, height),))


def test_large_pictures_for_small_samples() -> None:
    found = first(photos(2048, 1536))
    assert found.cause == "oversized_decode"
    assert found.toggles[0] == "draft_decode"
    assert "63 times" in found.evidence[0]


def test_the_decoder_that_was_seen_is_told_how() -> None:
    assert "image.draft" in first(photos(2048, 1536)).advice
    line = values.GET._replace(line=50)
    made = photos(2048, 1536, ((line,), 40), (values.RESIZE, 10))
    calls = (LineCalls("/me/data.py", 50, ("cv2.imread",)),)
    found = first(builders.without(made, calls=calls))
    assert found.cause == "oversized_decode"
    assert "IMREAD_REDUCED_COLOR" in found.advice


def test_formats_that_are_decoded_whole_are_not_told_to_be_decoded_smaller() -> None:
    made = photos(2048, 1536)
    images = (ImageSize("/data/1.PNG", 2048, 1536), ImageSize("/data/2.png", 2048, 1536))
    found = first(builders.without(made, images=(*made.images, *images)))
    assert found.cause == "oversized_decode"
    assert ".png file cannot be decoded at reduced size" in found.advice
    assert "draft" not in found.advice
    assert "draft_decode" not in found.toggles
    unknown = first(builders.without(made, images=(ImageSize("/data/1", 2048, 1536),)))
    assert unknown.toggles[0] == "draft_decode"


@pytest.mark.parametrize("workers", [0, 2])
def test_pictures_decoded_as_large_as_used_simply_cost_that(workers: int) -> None:
    found = causes(photos(256, 224, workers=workers, fetch_ms=16.0))
    assert "oversized_decode" not in found
    assert found & {"decode_cpu", "no_workers_cpu_bound"}


def test_pictures_without_files_are_judged_by_the_time_a_used_pixel_takes() -> None:
    rows = ((values.JPEG, 40), (values.RESIZE, 2))
    slow = values.profile(*rows, **PHOTO)
    quick = values.profile(*rows, **{**PHOTO, "fetch_ms": 30.0})
    assert "oversized_decode" in causes(slow)
    assert "oversized_decode" not in causes(quick)


def test_pictures_asked_for_at_reduced_size_are_not_oversized() -> None:
    made = photos(2048, 1536, fetch_ms=60.0)
    calls = (LineCalls("/me/data.py", 0, (".draft",)),)
    assert "oversized_decode" not in causes(builders.without(made, calls=calls))


def test_a_piece_cut_out_of_a_large_picture_needs_it_at_full_size() -> None:
    cut = photos(2048, 1536, (values.JPEG, 40))
    assert "oversized_decode" not in causes(cut)
    resized = (LineCalls("/me/data.py", 0, (".resize",)),)  # too quick to be seen
    assert "oversized_decode" in causes(builders.without(cut, calls=resized))


def test_pictures_that_are_not_in_the_batch_have_no_size_to_compare() -> None:
    assert "oversized_decode" not in causes(photos(2048, 1536, batch_bytes=8 * 16))


def epochs(digest: int, *, again: int, calls: tuple[str, ...] = ()) -> Profile:
    """Five epochs of ten batches; checksums start at `digest` and move by `again` an epoch."""
    made = values.profile((values.RESIZE, 60), epochs=5, batches=10, **SMALL)
    rows = tuple(row._replace(digest=digest + row.task + again * row.epoch) for row in made.fetches)
    known = (LineCalls("/me/data.py", 0, calls),) if calls else ()
    return builders.without(made, fetches=rows, calls=known)


def test_the_same_items_made_in_every_epoch() -> None:
    found = first(epochs(7, again=0))
    assert found.cause == "repeated_deterministic_transform"
    assert found.share == pytest.approx(0.8, abs=0.1)  # four of five epochs


def test_what_does_not_fit_into_memory_is_told_to_go_into_a_file_only() -> None:
    made = epochs(7, again=0)
    small = dataclasses.replace(made.machine, memory_limit_bytes=1)
    advice = first(builders.without(made, machine=small)).advice
    assert "too much for this machine's memory" in advice
    assert "cache in memory" not in advice
    assert "cache in memory" in first(made).advice


def test_augmentation_is_not_told_to_be_kept() -> None:
    made = epochs(7, again=1000, calls=("random.random",))
    assert "repeated_deterministic_transform" not in causes(made)


@pytest.mark.parametrize(
    ("pairs", "alike", "calls", "told"),
    [(12, 12, (), True), (12, 11, (), False), (4, 4, (), False),
     (12, 12, ("random.random",), False), (40, 40, ("random.random",), True)],
    ids=["alike", "one differs", "too few", "perhaps by chance", "too many for chance"],
)  # fmt: skip
def test_shuffled_samples_are_compared_one_by_one(
    pairs: int, alike: int, calls: tuple[str, ...], told: bool
) -> None:
    shuffled = epochs(7, again=1000, calls=calls)
    made = builders.without(shuffled, samples_again=(SamplesAgain(0, pairs, alike),))
    assert ("repeated_deterministic_transform" in causes(made)) is told


def test_two_epochs_are_not_many() -> None:
    made = values.profile((values.RESIZE, 60), epochs=2, batches=10, **SMALL)
    rows = tuple(row._replace(digest=7 + row.task) for row in made.fetches)
    assert "repeated_deterministic_transform" not in causes(builders.without(made, fetches=rows))
