"""Single samples are recognised when they are made again, however batches are put together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.capture.observers.samples_again import keep_notes, kept_notes  # noqa: E402
from jupyter_ioscope.capture.sample_checksums import (  # noqa: E402
    SampleChecksums,
    compared,
    note_of,
)

LONG_NS = 50_000_000


def samples(count: int) -> Any:
    return torch.arange(count * 6, dtype=torch.float32).reshape(count, 2, 3)


@pytest.mark.parametrize(
    "join",
    [
        lambda rows: torch.stack(rows),
        lambda rows: [torch.stack(rows), torch.arange(len(rows)) * 0],
        lambda rows: {"x": torch.stack(rows), "name": ["a"] * len(rows)},
        lambda rows: np.stack([row.numpy() for row in rows]),
        lambda rows: [{"x": row, "kind": "a"} for row in rows],
        lambda rows: list(zip(rows, [0] * len(rows), strict=True)),
    ],
    ids=["tensor", "fields", "dict", "array", "dicts", "tuples"],
)
def test_a_sample_has_one_checksum_wherever_it_stands(join: Any) -> None:
    rows = samples(4)
    forwards = join([rows[i] for i in (0, 1, 2)])
    backwards = join([rows[i] for i in (2, 1, 0)])
    assert note_of(7, forwards, 0, 3) == note_of(7, backwards, 2, 3)
    assert note_of(7, forwards, 0, 3) != note_of(7, forwards, 1, 3)
    changed = join([rows[0] + 0.5, rows[1], rows[2]])
    assert note_of(7, forwards, 0, 3) != note_of(7, changed, 0, 3)


@pytest.mark.parametrize("batch", [object(), [], torch.zeros(5, 2), torch.zeros(4, 3).T])
def test_what_has_no_such_rows_gives_no_note(batch: Any) -> None:
    assert note_of(0, batch, 0, 3) is None


def test_few_samples_of_a_fetch_and_of_a_pass_are_looked_at() -> None:
    watch = SampleChecksums()
    indices = list(range(64))
    batch = samples(64)
    assert [note.sample for note in watch(indices, batch, LONG_NS)] == [0, 8]
    assert watch(indices, batch, 1_000_000) == [], "a short fetch is left alone"
    for _ in range(100):
        watch(indices, batch, LONG_NS)
    assert watch(indices, batch, LONG_NS) == []
    watch.restart()
    assert watch(indices, batch, LONG_NS)
    assert watch(3, batch[0], LONG_NS) == [], "a sample that came without a batch"


def test_a_batch_that_cannot_be_looked_at_is_left_alone() -> None:
    class Odd(dict):  # type: ignore[type-arg]
        def values(self) -> Any:
            raise RuntimeError("not to be looked at")

    watch = SampleChecksums()
    assert watch([0, 8], Odd(), LONG_NS) == []
    assert watch([0, 8], samples(2), LONG_NS) == [], "and so are those that follow"


def test_samples_are_compared_with_their_first_form() -> None:
    rows = samples(2)
    plain, other, longer = (
        note
        for batch in (rows, rows + 1, torch.zeros(2, 2, 4))
        if (note := note_of(8, batch, 0, 2)) is not None
    )
    assert compared([plain, plain, plain]) == (2, 2)
    assert compared([plain, other]) == (1, 0)
    assert compared([plain, longer]) == (0, 0), "padded otherwise: nothing to compare"


class Slow(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    """Items that take a while; with `chance` they differ from time to time."""

    def __init__(self, chance: bool) -> None:
        self.chance = chance

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.002)
        return torch.full((4,), float(index)) + (torch.rand(4) if self.chance else 0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("chance", [False, True])
def test_a_shuffled_loader_is_seen_to_repeat_itself(workers: int, chance: bool) -> None:
    loader = torch.utils.data.DataLoader(
        Slow(chance), batch_size=6, shuffle=True, num_workers=workers
    )
    with profile(stacks=False) as p:
        for _ in range(3):
            for _batch in loader:
                pass
    assert p.profile is not None
    [row] = p.profile.samples_again
    assert row.compared >= 6  # of six samples that are watched, two a batch at most
    assert row.alike == (0 if chance else row.compared)


def test_notes_of_workers_are_kept_in_files(tmp_path: Path) -> None:
    note = note_of(16, samples(2), 1, 2)
    assert note is not None
    keep_notes(str(tmp_path), 3, [note, note])
    (tmp_path / "samples-1-0.bin").write_bytes(b"torn")
    (tmp_path / "samples-1-x.bin").write_bytes(b"no number")
    assert list(kept_notes(str(tmp_path))) == [(3, note), (3, note)]
    keep_notes(str(tmp_path / "gone"), 3, [note])  # the profile is over
