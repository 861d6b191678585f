"""Toggles that change only a loader's settings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from jupyter_ioscope.trials import delivery, session
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles import fewer_workers, pin_memory
from tests.toggle_checks import checked, refusal, run_code
from tests.trial_loaders import Sleeping, random_states

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("short_trials")]


class OneSlow(Dataset[Any]):
    """One slow batch in seven: more than three workers hold, so in order they wait for each."""

    def __len__(self) -> int:
        return 98

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.15 if index % 14 == 3 else 0.001)
        return torch.tensor([index])


class Threads(Dataset[Any]):
    """Tells how many threads torch and the environment give to the process that asks."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return torch.get_num_threads(), int(os.environ.get("OMP_NUM_THREADS", "0"))


def four_threads(worker_id: int) -> None:
    torch.set_num_threads(4)
    os.environ["OMP_NUM_THREADS"] = "4"


def table(rows: int = 3_000) -> TensorDataset:
    return TensorDataset(torch.arange(rows), torch.ones(rows, 4))


def test_batches_that_overtake_are_the_same_set_and_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    # only a whole epoch shows that it is the same set
    monkeypatch.setattr(session, "_CHECKS", 15)
    monkeypatch.setattr(session, "Limit", delivery.Limit)
    loader = DataLoader(OneSlow(), batch_size=2, num_workers=3, multiprocessing_context="fork")
    before = random_states()
    found = compare(loader, toggles=["in_order"], budget_s=90)
    assert found.ratio > 1.1  # above 2 where nothing else runs
    assert found.same_data.verdict == "identical"
    assert "in an order that may vary" in found.same_data.text
    assert "Batches overtake each other, so whole epochs were timed." in found.notes
    assert loader.in_order
    assert random_states() == before


class Everything(torch.utils.data.IterableDataset[Any]):
    """Each worker yields all of it."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        return iter(torch.arange(self.length))


@pytest.mark.parametrize("length", [60, 5_000])
def test_samples_that_come_once_without_workers_and_twice_with_them_are_told(length: int) -> None:
    loader = DataLoader(Everything(length), 6, num_workers=2, multiprocessing_context="fork")
    _, same = checked(loader, "no_workers")
    assert same.verdict == "different"
    assert "A delivers samples up to 2 times an epoch, B each one once" in same.text


def test_out_of_order_needs_two_workers() -> None:
    assert "num_workers is 1" in refusal(DataLoader(Sleeping(), num_workers=1), "in_order")
    made = DataLoader(Sleeping(), num_workers=2, in_order=False)
    assert refusal(made, "in_order") == "in_order is False already"


def test_pinning_is_refused_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pin_memory, "accelerator", lambda: False)
    assert "there is no accelerator" in refusal(DataLoader(table()), "pin_memory")
    monkeypatch.setattr(pin_memory, "accelerator", lambda: True)
    assert refusal(DataLoader(table()), "pin_memory") == ""
    spec = spec_of(DataLoader(table()))
    assert "pin_memory=True,  # was False" in pin_memory.code(spec)
    assert "non_blocking=True" in pin_memory.code(spec)


@pytest.mark.parametrize(
    ("initialised", "built", "devices", "there"),
    [
        (True, False, 0, True),
        (False, True, 2, True),
        (False, True, 0, False),
        (False, False, 2, False),
    ],
)
def test_an_accelerator_is_one_that_is_in_use_or_that_its_driver_counts(
    monkeypatch: pytest.MonkeyPatch, initialised: bool, built: bool, devices: int, there: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: built)
    monkeypatch.setattr(torch.cuda, "_device_count_nvml", lambda: devices, raising=False)
    assert pin_memory.accelerator() is there


def test_a_torch_that_cannot_count_devices_has_none_before_one_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.delattr(torch.cuda, "_device_count_nvml", raising=False)
    assert pin_memory.accelerator() is False


def test_pinned_batches_are_the_same_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pin_memory, "accelerator", lambda: True)
    loader = DataLoader(table(), batch_size=64)
    spec, same = checked(loader, "pin_memory")
    assert (spec.pin_memory, same.verdict) == (True, "identical")
    assert refusal(DataLoader(table(), pin_memory=True), "pin_memory") == "pin_memory is on already"


def test_workers_are_not_forked_from_a_program_that_uses_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loader = DataLoader(table(), num_workers=1, multiprocessing_context="spawn")
    assert refusal(loader, "start_method") == ""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert "CUDA is in use" in refusal(loader, "start_method")


def test_looking_for_an_accelerator_initialises_none() -> None:
    assert pin_memory.accelerator() in (True, False)
    cuda: Any = torch.cuda
    assert not cuda.is_initialized()


def test_data_in_memory_is_faster_without_workers() -> None:
    loader = DataLoader(table(), batch_size=8, num_workers=2, multiprocessing_context="fork")
    found = compare(loader, toggles=["no_workers"], budget_s=90)
    assert found.verdict == "faster"
    assert found.ratio > 2
    assert found.same_data.verdict == "identical"
    assert "num_workers=0,  # was 2" in found.code
    assert refusal(DataLoader(table()), "no_workers") == "num_workers is 0 already"


def test_workers_beyond_the_cores_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_workers, "cores_per_rank", lambda: 3)
    spec = spec_of(DataLoader(table(), num_workers=9))
    assert fewer_workers.refuse(spec) == ""
    assert fewer_workers.apply(spec).num_workers == 3
    assert "this process may use 3 cores" in refusal(
        DataLoader(table(), num_workers=3), "fewer_workers"
    )


def test_workers_beyond_the_shards_of_a_stream_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stream(torch.utils.data.IterableDataset[Any]):
        num_shards = 2

        def __iter__(self) -> Iterator[Any]:
            return iter(range(4))

    monkeypatch.setattr(fewer_workers, "cores_per_rank", lambda: 8)
    spec = spec_of(DataLoader(Stream(), num_workers=5))
    assert fewer_workers.apply(spec).num_workers == 2


def test_forked_workers_start_faster_than_spawned_ones() -> None:
    loader = DataLoader(
        Sleeping(16, 0.0), batch_size=4, num_workers=1, multiprocessing_context="spawn"
    )
    spec, same = checked(loader, "start_method")
    assert same.verdict == "identical"
    code = code_of(spec_of(loader), spec)
    assert 'multiprocessing_context="fork"' in code
    made = run_code(code, loader)
    assert made.multiprocessing_context.get_start_method() == "fork"
    assert refusal(made, "start_method") == "workers are forked already"
    assert "num_workers is 0" in refusal(DataLoader(table()), "start_method")


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_a_worker_keeps_to_one_thread_after_the_users_own_init(way: str) -> None:
    loader = DataLoader(
        Threads(), num_workers=1, worker_init_fn=four_threads, multiprocessing_context=way
    )
    spec, same = checked(loader, "threads_per_worker")
    assert same.verdict == "different"  # this dataset tells its threads
    assert "int" in same.text or "exact" in same.text
    made = run_code(code_of(spec_of(loader), spec), loader) if way == "fork" else None
    if made is not None:
        assert [tuple(int(v) for v in row) for row in made] == [(1, 1)] * 8
    assert loader.worker_init_fn is four_threads
    assert "num_workers is 0" in refusal(DataLoader(table()), "threads_per_worker")
