"""Rules about workers: copies, uneven shares, order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.duplicates import copies_in, wasted_fraction
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.out_of_order import tail_ratio, waited_for_order
from jupyter_ioscope.diagnosis.rules import head_of_line
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Epoch, Fetch
from tests import builders

MS = 1_000_000
LABELS = 1 << 32


def found(profile: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(profile).findings if row.cause == cause), None)


def stream(profile: Profile, digest: Callable[[Fetch, int], int], **loader: object) -> Profile:
    """`profile` as a stream whose fetches carry `digest(fetch, how manieth of its worker)`."""
    seen: dict[int, int] = {}
    rows = []
    for row in profile.fetches:
        number = seen.get(row.worker, 0)
        seen[row.worker] = number + 1
        rows.append(row._replace(digest=digest(row, number)))
    info = dataclasses.replace(profile.loaders[0], dataset_kind="iterable", **loader)  # type: ignore[arg-type]
    return builders.without(profile, loaders=(info,), fetches=tuple(rows))


def in_order_loop(
    services_ms: Sequence[tuple[int, float]], workers: int, step_ms: float, prefetch: int = 2
) -> Profile:
    """A loop over batches of (worker, fetch in ms), as torch runs it: in order, with credits. The
    fetches only wait."""
    base = builders.profile(workers, batches=8, states={"cpu": 0.1, "sleep": 0.9})
    start = base.epochs[0].iter_start_ns
    free: dict[int, float] = {}
    taken: list[float] = []
    batches, fetches, now = [], [], float(start)
    asked = {worker: base.workers[worker].pid for worker in range(workers)}
    for task, (worker, service_ms) in enumerate(services_ms):
        due = taken[task - workers * prefetch] if task >= workers * prefetch else start
        begin = max(free.get(worker, start), due)
        free[worker] = begin + service_ms * MS
        wait_start, now = now, max(now, free[worker])
        taken.append(now)
        fetches.append(
            Fetch(worker, asked[worker], 0, 0, task, int(begin), int(free[worker]), 0,
                  int(service_ms * MS / 10), 8, 0, 0, 8, 0, 0, 2, 4096)
        )  # fmt: skip
        step_end = now + step_ms * MS
        batches.append(
            Batch(task, 0, 0, int(wait_start), int(now), int(step_end), 10_000, 10_000, 8, worker,
                  task)
        )  # fmt: skip
        now = step_end
    end = int(now) + MS
    return builders.without(
        base,
        end_ns=end,
        epochs=(Epoch(0, 0, start, start + MS, end),),
        batches=tuple(batches),
        fetches=tuple(sorted(fetches, key=lambda row: row.start_ns)),
        workers=tuple(
            row._replace(entered_ns=start, left_ns=end) for row in base.workers[:workers]
        ),
        threads=(),
        stacks=None,
    )


# -- copies of a stream ---------------------------------------------------------------------------


def test_workers_that_make_the_same_batches_are_found_first_whatever_else_costs() -> None:
    profile = stream(builders.profile(4, fetch_ms=30), lambda row, number: 1000 + number)
    first = diagnose(profile).findings[0]
    assert first.cause == "duplicated_across_workers"
    assert first.share == pytest.approx(0.75, abs=0.05)
    assert first.harm == "data"
    assert "get_worker_info" in first.advice


@pytest.mark.parametrize(
    "digest",
    [
        lambda row, number: 1000 + row.task,
        lambda row, number: 77,
        lambda row, number: 77 + number % 2,
        lambda row, number: 0,
        lambda row, number: 1000 + number if number < 3 else 5000 + row.task,
    ],
    ids=["shared out", "constant data", "two kinds of batch", "not looked at", "a common start"],
)
def test_streams_that_are_not_handed_out_twice_are_left_alone(
    digest: Callable[[Fetch, int], int],
) -> None:
    profile = stream(builders.profile(2, fetch_ms=30), digest)
    assert found(profile, "duplicated_across_workers") is None


def test_equal_labels_are_enough_where_pixels_are_augmented() -> None:
    profile = stream(
        builders.profile(2), lambda row, number: (1 + number) * LABELS + 17 * row.task + 1
    )
    row = found(profile, "duplicated_across_workers")
    assert row is not None
    assert "labels and ids" in row.evidence[0]


def test_copies_among_some_of_the_workers_are_counted_as_such() -> None:
    profile = stream(
        builders.profile(4), lambda row, number: 10_000 * (row.worker // 2) + number + 1
    )
    copies = copies_in(profile.fetches)
    assert [item.workers for item in copies] == [(0, 1), (2, 3)]
    assert wasted_fraction(copies, profile.fetches) == pytest.approx(0.5, abs=0.05)


def test_a_few_samples_that_are_alike_do_no_harm_to_the_data() -> None:
    profile = stream(
        builders.profile(8), lambda row, number: 10_000 * min(6, row.worker) + number + 1
    )
    row = found(profile, "duplicated_across_workers")
    assert row is not None
    assert row.share == pytest.approx(1 / 8, abs=0.05)
    assert not row.harm


def test_a_map_dataset_is_never_said_to_be_copied() -> None:
    profile = stream(builders.profile(2), lambda row, number: 1000 + number)
    info = dataclasses.replace(profile.loaders[0], dataset_kind="map")
    profile = builders.without(profile, loaders=(info,))
    assert found(profile, "duplicated_across_workers") is None


# -- order ----------------------------------------------------------------------------------------


def one_slow_in(every: int, slow_ms: float = 250, workers: int = 4) -> list[tuple[int, float]]:
    return [(task % workers, slow_ms if task % every == every // 2 else 8.0) for task in range(120)]


def test_finished_batches_behind_a_slow_one_are_the_cause() -> None:
    profile = in_order_loop(one_slow_in(12), workers=4, step_ms=12)
    first = diagnose(profile).findings[0]
    assert first.cause == "head_of_line_blocking"
    assert "in_order=False" in first.advice
    order = waited_for_order(profile.batches, {row.task: row for row in profile.fetches})
    assert order.batches == pytest.approx(10, abs=3)


@pytest.mark.parametrize(
    "services",
    [
        [(task % 4, 40.0) for task in range(120)],
        [(task % 4, 30.0 + 20.0 * (task * 7 % 5) / 5) for task in range(120)],
        [(task % 4, 400.0 if task < 4 else 40.0) for task in range(120)],
    ],
    ids=["even", "a little uneven", "slow first batches"],
)
def test_loaders_with_even_samples_do_not_suffer_from_order(
    services: list[tuple[int, float]],
) -> None:
    assert found(in_order_loop(services, 4, 2), "head_of_line_blocking") is None


def test_a_slow_sample_that_the_step_hides_costs_nothing() -> None:
    profile = in_order_loop(one_slow_in(40, slow_ms=60), workers=4, step_ms=30)
    assert found(profile, "head_of_line_blocking") is None


def test_a_loader_that_hands_out_whatever_is_ready_is_left_alone() -> None:
    profile = in_order_loop(one_slow_in(12), workers=4, step_ms=12)
    info = dataclasses.replace(profile.loaders[0], in_order=False)
    assert found(builders.without(profile, loaders=(info,)), "head_of_line_blocking") is None


def test_what_is_held_up_by_others_is_no_slow_sample() -> None:
    rows = [
        Fetch(0, 7, 0, 0, task, 100 * task * MS, (100 * task + (90 if task % 5 == 0 else 10)) * MS,
              0, 9 * MS, 8, 0, 0, 0, 4, 0, 1, 64)
        for task in range(50)
    ]  # fmt: skip
    assert tail_ratio(rows, held_up=0.95) < 2
    assert tail_ratio(rows, held_up=None) < 2
    assert tail_ratio(rows, held_up=0.0) > 5


# -- shares of a stream ---------------------------------------------------------------------------


def shares(*counts: int) -> list[tuple[int, float]]:
    """Batches in the order in which torch takes them: in turn, those that ran out left out."""
    return [
        (worker, 40.0)
        for turn in range(max(counts))
        for worker, count in enumerate(counts)
        if turn < count
    ]


def as_stream(profile: Profile) -> Profile:
    info = dataclasses.replace(profile.loaders[0], dataset_kind="iterable")
    return builders.without(profile, loaders=(info,))


def test_a_worker_with_most_of_the_stream_is_found_with_what_even_shares_would_gain() -> None:
    profile = as_stream(in_order_loop(shares(90, 10, 10, 10), 4, 1))
    first = diagnose(profile).findings[0]
    assert first.cause == "uneven_shards"
    assert first.share == pytest.approx(1 - 30 / 90, abs=0.1)
    assert "Worker 0 made 90 batches" in first.evidence[0]


@pytest.mark.parametrize("counts", [(30, 30, 30, 30), (31, 30, 30, 30), (32, 30, 28, 30)])
def test_even_shares_are_left_alone(counts: tuple[int, ...]) -> None:
    assert found(as_stream(in_order_loop(shares(*counts), 4, 1)), "uneven_shards") is None


def test_uneven_shares_that_the_step_hides_cost_nothing() -> None:
    assert found(as_stream(in_order_loop(shares(60, 20), 2, 60)), "uneven_shards") is None


def test_an_epoch_that_was_left_early_says_nothing_about_shares() -> None:
    profile = as_stream(in_order_loop(shares(90, 10, 10, 10), 4, 1))
    epochs = tuple(row._replace(end_ns=None) for row in profile.epochs)
    assert found(builders.without(profile, epochs=epochs), "uneven_shards") is None


# -- all of them ----------------------------------------------------------------------------------


def test_facts_of_a_profile_are_untouched_by_the_rules() -> None:
    profile = as_stream(in_order_loop(one_slow_in(12), workers=4, step_ms=12))
    before = dataclasses.asdict(profile.loaders[0]), profile.fetches
    Facts(profile)
    diagnose(profile)
    assert (dataclasses.asdict(profile.loaders[0]), profile.fetches) == before


def uneven(slow_ms: float, *, held_up: bool) -> Profile:
    """Every tenth fetch takes `slow_ms`, on the CPU or in line for a core; no sampler ran."""
    made = builders.profile(2, fetch_ms=5, fetch_cv=0.0, step_ms=1, batches=200)
    extra = int(slow_ms * MS)
    shift = {row.pid: 0 for row in made.fetches}
    fetches = []
    for row in sorted(made.fetches, key=lambda fetch: fetch.start_ns):
        begin = row.start_ns + shift[row.pid]
        longer = extra if row.task % 10 == 3 else 0
        shift[row.pid] += longer
        cpu_ns = row.cpu_ns + (0 if held_up else longer)
        fetches.append(row._replace(start_ns=begin, end_ns=begin + row.fetch_ns + longer,
                                    cpu_ns=cpu_ns))  # fmt: skip
    return builders.without(made, fetches=tuple(fetches))


def test_fetches_that_only_waited_for_a_core_have_no_tail_where_the_line_is_known() -> None:
    held, computed = uneven(80, held_up=True).fetches, uneven(80, held_up=False).fetches
    assert tail_ratio(held, 1.0) < 2 < tail_ratio(computed, 1.0)


def test_a_line_that_was_told_from_inside_counts_as_one() -> None:
    made = uneven(80, held_up=True)
    inside = tuple(
        dataclasses.replace(row, exact=False, run_queue_ns=3_000 * MS)
        for row in made.threads
        if row.role == "worker"
    )
    facts = Facts(builders.without(made, threads=inside))
    assert head_of_line._held_up(facts) is not None
    blind = tuple(dataclasses.replace(row, run_queue_ns=0) for row in inside)
    assert head_of_line._held_up(Facts(builders.without(made, threads=blind))) is None
