"""A shuffle buffer that the user wrote: told by time, memory and chance together."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.observed import LineCalls, ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series
from tests import builders
from tests.late_first_fetch import with_late_first_fetch

MB = 1_000_000
BATCH_BYTES = 8 * 50_000
CHANCE = (LineCalls("/me/data.py", 0, ("random.Random", ".shuffle")),)
# As long as 500 fetches of 4 ms, eight samples each.
FILLING_MS, HELD_MB = 2_000.0, 200


def stream(
    first_ms: float = FILLING_MS,
    grown_mb: int = HELD_MB,
    calls: tuple[LineCalls, ...] = CHANCE,
    kind: str = "iterable",
    workers: int = 0,
) -> Profile:
    made = builders.profile(
        workers, fetch_ms=4, cpu_fraction=1.0, step_ms=4, batches=100, batch_bytes=BATCH_BYTES
    )
    made = with_late_first_fetch(made, first_ms)
    times = (made.start_ns, made.end_ns)
    rss = Series("tree_rss_bytes", "bytes", "gauge", "tree", times, (3e8, 3e8 + grown_mb * MB))
    uses = tuple(
        ProcessUse(row.pid, row.worker, *times, *(0,) * 6, 80 * MB, (80 + grown_mb) * MB, 8, 1024)
        for row in made.fetches[:workers]
    )
    return builders.without(
        made,
        loaders=tuple(replace(row, dataset_kind=kind) for row in made.loaders),
        series=MappingProxyType({**made.series, rss.name: rss}),
        processes=uses,
        calls=calls,
    )


def causes(value: Profile) -> list[str]:
    return [row.cause for row in diagnose(value).findings]


def test_a_buffer_that_holds_what_the_first_fetch_made_is_the_cause() -> None:
    found = diagnose(stream()).findings[0]
    assert (found.cause, found.resource) == ("shuffle_buffer_fill", "start_up")
    assert found.share > 0.5
    assert "first_batch_setup" not in causes(stream())


def test_so_is_one_in_a_worker() -> None:
    assert causes(stream(workers=1))[0] == "shuffle_buffer_fill"


@pytest.mark.parametrize(
    "value",
    [
        stream(grown_mb=10),
        stream(calls=()),
        stream(kind="map"),
        stream(first_ms=20, grown_mb=2),
    ],
    ids=["an index, or skipping", "nothing random", "a map dataset", "a short first fetch"],
)
def test_what_lacks_one_of_the_signs_is_no_buffer(value: Profile) -> None:
    assert "shuffle_buffer_fill" not in causes(value)
