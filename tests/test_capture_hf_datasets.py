"""Loops over a Hugging Face dataset itself: rows, batches of rows, streams."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

from jupyter_ioscope.api import Recording, profile  # noqa: E402

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def rows() -> Any:
    return datasets.Dataset.from_dict({"x": list(range(5000)), "y": [str(i) for i in range(5000)]})


def recorded(loop: Any) -> tuple[Recording, list[Any]]:
    with profile(stacks=False) as p:
        out = list(loop())
    return p, out


def test_rows_are_recorded_in_groups_and_delivered_unchanged(rows: Any) -> None:
    p, out = recorded(lambda: rows)
    assert out == list(rows)
    assert p.profile.loaders[0].library == "datasets"
    assert sum(batch.samples for batch in p.batches) <= 5000
    assert sum(batch.samples for batch in p.batches) >= 4900  # an open group at the end may be lost
    assert 200 <= len(p.batches) < 2500


def test_batches_of_rows_count_their_rows(rows: Any) -> None:
    p, out = recorded(lambda: rows.iter(batch_size=64))
    assert out == list(rows.iter(batch_size=64))
    assert sum(batch.samples for batch in p.batches) == 5000
    assert p.profile.loaders[0].batch_size == 64


def test_streams_are_recorded(rows: Any) -> None:
    stream = rows.to_iterable_dataset()
    p, out = recorded(lambda: stream)
    assert len(out) == 5000
    assert p.profile.loaders[0].dataset_kind == "iterable"
    assert p.profile.epochs[0].end_ns is not None


def test_a_stream_inside_a_dataloader_is_recorded_once(rows: Any) -> None:
    torch = pytest.importorskip("torch")
    stream = rows.select(range(40)).to_iterable_dataset().with_format("torch")
    p, out = recorded(lambda: torch.utils.data.DataLoader(stream, batch_size=8))
    assert len(out) == 5
    assert [info.library for info in p.profile.loaders] == ["torch"]
    assert len(p.batches) == 5


def test_the_traceback_of_a_failing_transform_has_no_frame_of_ours(rows: Any) -> None:
    broken = rows.with_transform(lambda batch: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught, profile(stacks=False):
        for _ in broken:
            pass
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [name for name in files if "jupyter_ioscope" in name]


def test_the_classes_are_put_back(rows: Any) -> None:
    before = datasets.Dataset.__iter__, datasets.Dataset.iter, datasets.IterableDataset.__iter__
    recorded(lambda: rows.select(range(3)))
    assert before == (
        datasets.Dataset.__iter__,
        datasets.Dataset.iter,
        datasets.IterableDataset.__iter__,
    )
