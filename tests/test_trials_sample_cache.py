"""The cache of samples: what went in comes out, whatever dies meanwhile, within its size."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.sample_cache import CachedDataset
from jupyter_ioscope.trials.sample_cache._codec import decoded, encoded
from jupyter_ioscope.trials.sample_cache._store import SampleStore
from tests.trial_loaders import Sleeping

pytestmark = [pytest.mark.timeout(300), pytest.mark.second]


def content(key: int, version: int = 0) -> bytes:
    """What belongs under a key: any mixture of two entries is seen."""
    length = (key * 7919) % 3000
    return bytes([(key + version) % 251]) * length


def got(store: SampleStore, key: int | bytes) -> bytes | None:
    data = store.get(key)
    return None if data is None else bytes(data)


def open_files() -> set[str]:
    return {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{fd}")}  # fmt: skip


def test_random_work_agrees_with_a_plain_dictionary() -> None:
    noise = random.Random(5)
    store = SampleStore(300_000)
    known: dict[int, bytes] = {}
    hits = 0
    for _ in range(6_000):
        key = noise.randrange(400)
        if noise.random() < 0.4:
            known[key] = content(key, noise.randrange(9))
            assert store.put(key, [known[key][:17], known[key][17:]])
        elif (found := store.get(key)) is not None:
            hits += 1
            assert found == known[key]
    stats = store.stats()
    assert hits > 500
    assert stats.evicted > 500
    assert stats.hits == hits
    assert stats.size_bytes <= stats.limit_bytes == 300_000


def test_what_was_used_least_recently_goes_first() -> None:
    noise = random.Random(6)
    store = SampleStore(200_000)
    order: OrderedDict[int, None] = OrderedDict()
    for step in range(3_000):
        key = noise.randrange(300)
        if noise.random() < 0.5:
            store.put(key, [bytes(1_000)])
            order[key] = None
            order.move_to_end(key)
        elif store.get(key) is not None:
            order.move_to_end(key)
        if step % 500 == 499:
            there = store.stats().entries
            assert there < 300
            newest = list(order)[-there:]
            # Only looking must not count as use: a copy of the order is compared as a whole.
            assert {key for key in range(300) if store._find(*_at(store, key)) >= 0} == set(newest)


def _at(store: SampleStore, key: int) -> tuple[Any, int, int]:
    return store._views(), key, 0


@pytest.mark.parametrize("entry_bytes", [200, 5_000, 150_000])
def test_a_full_cache_is_within_five_percent_of_its_limit(entry_bytes: int) -> None:
    limit = (2 if entry_bytes < 1_000 else 8) << 20
    store = SampleStore(limit)
    for key in range(3 * limit // entry_bytes):
        store.put(key, [bytes(entry_bytes)])
    stats = store.stats()
    assert stats.evicted > 0
    assert 0.95 * limit <= stats.size_bytes <= limit
    resident = os.fstat(store._memory.fd).st_blocks * 512
    assert resident <= 1.05 * limit


def test_large_samples_are_well_packed() -> None:
    store = SampleStore(8 << 20)
    for key in range(200):
        store.put(key, [bytes(150_000)])
    assert store.stats().used_bytes > 0.95 * (8 << 20)


def test_empty_and_too_large_entries() -> None:
    store = SampleStore(100_000)
    assert store.put(1, [b""])
    assert got(store, 1) == b""
    assert not store.put(2, [bytes(200_000)])
    assert store.get(2) is None
    assert got(store, 1) == b""
    stats = store.stats()
    assert (stats.entries, stats.too_large, stats.evicted) == (1, 1, 0)


def test_many_empty_entries_evict_each_other() -> None:
    store = SampleStore(64 * 1024)
    for key in range(5_000):
        assert store.put(key, [b""])
    assert got(store, 4_999) == b""
    assert store.get(0) is None


def test_an_unlike_first_entry_does_not_spoil_the_division() -> None:
    store = SampleStore(32 << 20)
    store.put(0, [b"x"])
    for key in range(1, 100):
        store.put(key, [bytes([key]) * 200_000])
    assert got(store, 99) == bytes([99]) * 200_000
    views = store._views()
    assert views is not None
    assert views.sizes.block_bytes > 4_096


def test_old_entries_are_misses() -> None:
    store = SampleStore(100_000, ttl_s=0.05)
    store.put(1, [b"one"])
    assert got(store, 1) == b"one"
    time.sleep(0.06)
    assert store.get(1) is None
    stats = store.stats()
    assert (stats.hits, stats.misses, stats.expired) == (1, 1, 1)
    store.put(1, [b"new"])
    assert got(store, 1) == b"new"
    assert store.stats().entries == 1


def test_keys_of_other_kinds_stay_apart() -> None:
    store = SampleStore(100_000)
    for key in (7, b"7", "seven", 1 << 70):
        store.put(key, [repr(key).encode()])  # type: ignore[arg-type]
    assert got(store, 7) == b"7"
    assert got(store, b"7") == b"b'7'"
    assert got(store, 1 << 70) == str(1 << 70).encode()


def _busy(store: SampleStore, seed: int, wrong: Any) -> None:
    noise = random.Random(seed)
    while True:
        key = noise.randrange(200)
        if noise.random() < 0.4:
            store.put(key, [content(key)])
        else:
            found = got(store, key)
            if found is not None and found != content(key):
                wrong.value += 1


def test_processes_killed_at_random_never_leave_wrong_bytes() -> None:
    context = multiprocessing.get_context("fork")
    store = SampleStore(120_000)
    wrong = context.Value("i", 0)
    noise = random.Random(8)
    workers = [context.Process(target=_busy, args=(store, seed, wrong)) for seed in range(3)]
    for worker in workers:
        worker.start()
    try:
        for round_ in range(60):
            time.sleep(noise.uniform(0.001, 0.03))
            at = noise.randrange(3)
            os.kill(workers[at].pid or 0, signal.SIGKILL)
            workers[at].join()
            workers[at] = context.Process(target=_busy, args=(store, 100 + round_, wrong))
            workers[at].start()
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    assert wrong.value == 0
    for key in range(200):
        store.put(key, [content(key)])
        assert got(store, key) == content(key)
    assert store.stats().hits > 200


def test_a_process_that_dies_while_it_writes_costs_the_contents_only() -> None:
    store = SampleStore(100_000)
    for key in range(20):
        store.put(key, [content(key)])
    pid = os.fork()
    if pid == 0:
        from jupyter_ioscope.trials.sample_cache import _store

        def dying(*arguments: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        vars(_store)["push"] = dying
        store.put(99, [b"half"])
        os._exit(1)
    os.waitpid(pid, 0)
    assert store.get(3) is None
    assert store.get(99) is None
    store.put(3, [content(3)])
    assert got(store, 3) == content(3)
    assert store.stats().repairs == 1


class Samples(Sleeping):
    def __getitem__(self, index: int) -> Any:
        time.sleep(self.wait_s)
        return {"x": torch.full((16, 16), float(index)), "y": index, "t": "t" * (index % 3)}


def values(loader: Any) -> list[Any]:
    return [
        (batch["x"][:, 0, 0].tolist(), batch["y"].tolist(), list(batch["t"])) for batch in loader
    ]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method_share_one_cache(method: str) -> None:
    dataset = Samples(24, wait_s=0.0)
    cached = CachedDataset(dataset, limit_bytes=1 << 20)
    loader: Any = DataLoader(
        cached, batch_size=4, num_workers=2, multiprocessing_context=method,  # type: ignore[arg-type]
        persistent_workers=method != "fork",  # they start in seconds: once is enough
    )  # fmt: skip
    plain = values(DataLoader(dataset, batch_size=4))
    assert values(loader) == plain
    assert cached.stats().misses == 24
    assert values(loader) == plain
    stats = cached.stats()
    assert (stats.hits, stats.misses, stats.entries) == (24, 24, 24)
    assert stats.hit_fraction == 0.5
    assert cached[3]["y"] == 3  # the parent shares it, too
    assert cached.stats().hits == 25


def test_it_behaves_as_the_dataset_otherwise() -> None:
    dataset = Samples(10)
    cached = ioscope.CachedDataset(dataset, limit_bytes=1 << 20)
    assert len(cached) == 10
    assert cached.wait_s == dataset.wait_s
    with pytest.raises(AttributeError):
        cached.nothing_of_this_name  # noqa: B018 - the look-up is what is tested
    assert vars(dataset) == {"length": 10, "wait_s": 0.004}


class Ragged:
    """Asked for several at once; remembers which."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        self.asked.append(list(indices))
        return [np.arange(index) for index in indices]


def test_batches_ask_the_dataset_for_the_missing_ones_only() -> None:
    dataset = Ragged()
    cached = CachedDataset(dataset, limit_bytes=1 << 20)
    cached.__getitems__([1, 2, 3])
    got = cached.__getitems__([4, 2, 5, 3])
    assert [len(array) for array in got] == [4, 2, 5, 3]
    assert dataset.asked == [[1, 2, 3], [4, 5]]


def test_a_hit_can_be_written_to_without_changing_the_cache() -> None:
    cached = CachedDataset(Samples(10, wait_s=0.0), limit_bytes=1 << 20)
    for _ in range(3):
        sample = cached[5]
        assert float(sample["x"].sum()) == 5.0 * 256
        sample["x"].zero_()


class Unpicklable(Samples):
    def __getitem__(self, index: int) -> Any:
        return (index, lambda: index)


def test_samples_that_cannot_be_stored_come_all_the_same() -> None:
    cached = CachedDataset(Unpicklable(5), limit_bytes=1 << 20)
    assert cached[2][1]() == 2
    assert cached[2][1]() == 2
    assert (cached.stats().unstorable, cached.stats().entries) == (2, 0)


@pytest.mark.parametrize(
    "sample",
    [
        torch.arange(6).reshape(2, 3).t(),
        torch.tensor(3.5),
        torch.tensor(1.5, dtype=torch.bfloat16),
        torch.ones(3, 4, dtype=torch.bfloat16),
        torch.zeros(0, 3),
        torch.eye(3).to_sparse(),
        torch.ones(3, requires_grad=True),
        torch.tensor([1 + 2j]),
        np.arange(12, dtype=np.int16).reshape(3, 4)[:, ::2],
        np.array(["a", None], dtype=object),
        {"a": [1, (2.0, None)], "b": "\ud800", 3: b"bytes"},
        [],
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_of_every_kind_come_back_equal(sample: Any) -> None:
    from jupyter_ioscope.trials.samples import sample_of

    back = decoded(bytearray(b"".join(encoded(sample))))
    assert type(back) is type(sample)
    assert sample_of(back).digest == sample_of(sample).digest


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = open_files(), set(os.listdir("/dev/shm"))
    cached = CachedDataset(Samples(10, wait_s=0.0), limit_bytes=1 << 20)
    values(DataLoader(cached, batch_size=2, num_workers=1, multiprocessing_context="fork"))  # type: ignore[arg-type]
    del cached
    gc.collect()
    assert (open_files(), set(os.listdir("/dev/shm"))) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"limit_bytes": 1000}, "at least 65536"),
        ({"limit_bytes": 1.5}, "whole number"),
        ({"limit_bytes": 1 << 20, "ttl_s": 0}, "above 0"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        CachedDataset(Samples(3), **arguments)


def test_iterable_datasets_cannot_be_cached() -> None:
    with pytest.raises(InputError, match="map-style"):
        CachedDataset(iter([1, 2]), limit_bytes=1 << 20)
