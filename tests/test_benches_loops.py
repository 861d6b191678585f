"""The benches of threads and of worker starts."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from jupyter_ioscope.benches import start, threads
from jupyter_ioscope.benches._bench import Measured
from jupyter_ioscope.errors import InputError

pytestmark = pytest.mark.timeout(90)


class Squares:
    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> int:
        return index * index


class SharedPlace(Squares):
    """Items go through one place that all threads share, as a seek on one open file does."""

    def __init__(self) -> None:
        self.place = 0

    def __getitem__(self, index: int) -> int:
        self.place = index
        time.sleep(0.001)
        return self.place


def test_items_of_several_threads_are_counted_and_their_time_adds_up() -> None:
    prepared = threads.prepare(Squares(), "")
    for arm in prepared.arms:
        told = arm.open()()
        assert told is not None
        assert told["ran"] + told["queued"] + told["blocked"] >= 0.95 * told["item"] > 0
        assert arm.look is None or list(arm.look()) == []


def test_a_data_set_whose_threads_disturb_each_other_is_found() -> None:
    two = threads.prepare(SharedPlace(), "").arms[1]
    assert two.look is not None
    (said,) = two.look()
    assert "come out otherwise than from one thread" in said


def test_a_function_that_waits_for_a_shared_lock_waits_longer_with_more_threads() -> None:
    lock = threading.Lock()

    def locked() -> None:
        with lock:
            time.sleep(0.002)

    one, *_, most = threads.prepare(locked, "").arms
    alone, together = one.open()(), most.open()()
    assert alone is not None
    assert together is not None
    assert threads.lock_share(alone, together) > 0.4


@pytest.mark.parametrize(
    ("target", "reason"),
    [("file.bin", "give a data set"), ([], "is empty"), (5, "has no items"),
     (lambda: 1 / 0, "fails at its first item: ZeroDivisionError")],
)  # fmt: skip
def test_what_has_no_items_is_refused(target: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        threads.prepare(target, "")


def measured(seconds: float, **own: float) -> Measured:
    return Measured(seconds, own)


def test_persistent_workers_pay_where_epochs_are_short() -> None:
    new, kept = measured(1.0), measured(0.1, batch=0.01, worker=50e6)
    short, long = start.pays(new, kept, 2, 100), start.pays(new, kept, 2, 100_000)
    assert "save 900\u00a0ms at every epoch from the second on" in short[0]
    assert "shorter than 18\u00a0s" in short[0]
    assert "they pay, with 47\u00a0% of it" in short[1]
    assert "hardly pay, with 0.1\u00a0% of it" in long[1]
    assert "100\u00a0MB between epochs" in short[2]
    assert start.pays(kept, new, 2, 100) == [
        "Keeping workers saved nothing here: a start is as fast as going on."
    ]


def test_new_workers_and_kept_ones_deliver_the_same_first_batch() -> None:
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(Squares(), batch_size=2, num_workers=1)
    prepared = start.prepare(loader, "")
    arms = {arm.name: arm for arm in prepared.arms}
    assert {"new by fork", "new by spawn", "kept (persistent_workers)"} <= set(arms)
    kept = arms["kept (persistent_workers)"]
    told = kept.open()()
    assert told is not None
    assert told["seconds"] > 0
    assert kept.look is not None
    assert list(kept.look()) == []
    assert loader._iterator is None  # the user's own loader was not touched


def test_a_bench_of_starts_wants_a_loader() -> None:
    with pytest.raises(InputError, match="give a DataLoader"):
        start.prepare([1, 2], "")
