"""Real loaders, real workers: what is recorded is what happened, and nothing else changes."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from jupyter_ioscope.api import Recording, profile  # noqa: E402
from jupyter_ioscope.capture import profiler  # noqa: E402
from tests.loaders_under_test import Numbers, OwnIter, Stream  # noqa: E402

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.beside,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:'pin_memory' argument"),
]

KINDS: dict[str, dict[str, Any]] = {
    "no workers": {},
    "fork": {"num_workers": 2, "multiprocessing_context": "fork"},
    "spawn": {"num_workers": 2, "multiprocessing_context": "spawn"},
    "forkserver": {"num_workers": 2, "multiprocessing_context": "forkserver"},
    "persistent": {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "fork"},
    "pinned": {"num_workers": 2, "pin_memory": True, "multiprocessing_context": "fork"},
    "samples": {"batch_size": None, "num_workers": 2, "multiprocessing_context": "fork"},
    "samples without workers": {"batch_size": None},
    "shuffled": {"shuffle": True, "num_workers": 2, "multiprocessing_context": "fork"},
}


def seeded() -> None:
    random.seed(7)
    torch.manual_seed(7)


def run(loader: Any, epochs: int = 2) -> list[Any]:
    return [batch for _ in range(epochs) for batch in loader]


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def recorded(make: Any, epochs: int = 2) -> tuple[Recording, list[Any]]:
    with profile(stacks=False) as p:
        batches = run(make(), epochs)
    return p, batches


def options(kind: str, stream: bool, plain_run: bool = False) -> dict[str, Any]:
    """What a loader is made with. Workers deliver the same however they start, and forked ones do
    it seconds earlier: the run without the profiler uses those."""
    made = {"batch_size": 4, **KINDS[kind]}
    if stream:
        made.pop("shuffle", None)
    if plain_run and made.get("num_workers"):
        made["multiprocessing_context"] = "fork"
    return made


def epochs_of(kind: str) -> int:
    """Spawned workers import torch anew in every epoch, which takes them seconds."""
    return 1 if kind == "spawn" else 2


# Workers that import torch first start in seconds. Spawned ones of a plain DataLoader are below.
SLOW_TWICE = {(DataLoader, "spawn"), (OwnIter, "forkserver")}


@pytest.mark.parametrize(
    ("cls", "kind"),
    [(cls, kind) for cls in (DataLoader, OwnIter) for kind in KINDS
     if (cls, kind) not in SLOW_TWICE],
)  # fmt: skip
def test_every_batch_is_recorded_and_none_is_changed(kind: str, cls: Any) -> None:
    def make(plain_run: bool = False) -> Any:
        return cls(Numbers(24), **options(kind, stream=False, plain_run=plain_run))

    epochs = epochs_of(kind)
    seeded()
    expected = plain(run(make(plain_run=True), epochs))
    state = torch.get_rng_state(), random.getstate()
    seeded()
    p, batches = recorded(make, epochs)
    assert plain(batches) == expected
    assert torch.equal(torch.get_rng_state(), state[0])
    assert random.getstate() == state[1]
    assert len(p.batches) == len(expected)
    assert sum(batch.samples for batch in p.batches) == 24 * epochs
    assert [epoch.end_ns is not None for epoch in p.profile.epochs] == [True] * epochs
    workers = KINDS[kind].get("num_workers", 0)
    fetched = {(fetch.epoch, fetch.task) for fetch in p.profile.fetches}
    assert fetched == {(batch.epoch, batch.task) for batch in p.batches}
    assert {fetch.worker for fetch in p.profile.fetches} == (set(range(workers)) or {-1})
    assert {batch.worker for batch in p.batches} == (set(range(workers)) or {-1})


@pytest.mark.parametrize("kind", ["no workers", "fork", "spawn", "persistent", "samples"])
def test_streams_are_recorded_to_the_last_short_batch(kind: str) -> None:
    def make(plain_run: bool = False) -> Any:
        return DataLoader(Stream(22), **options(kind, stream=True, plain_run=plain_run))

    epochs = epochs_of(kind)
    seeded()
    expected = plain(run(make(plain_run=True), epochs))
    seeded()
    p, batches = recorded(make, epochs)
    assert plain(batches) == expected
    assert sum(batch.samples for batch in p.batches) == 22 * epochs


def test_unordered_batches_are_matched_to_their_workers() -> None:
    p, batches = recorded(
        lambda: DataLoader(
            Numbers(40), batch_size=4, num_workers=2, in_order=False, multiprocessing_context="fork"
        )
    )
    assert sorted(i for batch in batches for i in plain(batch[0])) == sorted([*range(40)] * 2)
    known = [batch for batch in p.batches if batch.worker >= 0]
    assert len(known) == len(p.batches)


def test_workers_that_were_there_before_are_said_not_to_be_recorded() -> None:
    loader = DataLoader(
        Numbers(24),
        batch_size=4,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    run(loader, 1)
    p, batches = recorded(lambda: loader, 1)
    assert len(p.batches) == len(batches) == 6
    assert p.profile.fetches == ()
    assert p.profile.loaders[0].workers_before_profile
    assert any("already running" in gap.reason for gap in p.profile.not_measured)
    assert p.diagnosis.headline


def test_a_stream_whose_workers_were_there_before_is_recorded() -> None:
    # Nothing about it has a length: neither the stream, nor its sampler, nor its iterator.
    loader = DataLoader(
        Stream(24),
        batch_size=4,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    run(loader, 1)
    p, batches = recorded(lambda: loader, 1)
    assert len(p.batches) == len(batches) == 6
    assert p.profile.loaders[0].workers_before_profile


def test_a_dataset_that_iterates_a_loader_to_find_its_length_does_not_hang() -> None:
    class Measuring(Numbers):
        def __len__(self) -> int:
            return sum(len(batch[0]) for batch in DataLoader(Numbers(8), batch_size=4))

    p, batches = recorded(lambda: DataLoader(Measuring(), batch_size=2), 1)
    assert len(batches) == 4
    outer = [i for i, info in enumerate(p.profile.loaders) if info.batch_size == 2]
    assert [info.loader for info in p.profile.loaders] == list(range(len(p.profile.loaders)))
    assert sum(batch.loader in outer for batch in p.batches) == 4


def test_an_iterator_made_before_the_profile_is_recorded() -> None:
    iterator = iter(DataLoader(Numbers(24), batch_size=4))
    next(iterator)
    with profile(stacks=False) as p:
        rest = list(iterator)
    assert len(p.batches) == len(rest) == 5


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_nothing_else_holds_is_recorded_like_any_other(workers: int) -> None:
    with profile(stacks=False) as p:
        for _ in DataLoader(Numbers(24), batch_size=4, num_workers=workers):
            pass
    assert len(p.profile.loaders) == len(p.profile.epochs) == 1
    assert len(p.batches) == len(p.profile.fetches) == 6
    assert p.main_loader is not None
    assert p.main_loader.batch_size == 4


def test_two_loaders_in_step_are_told_apart() -> None:
    first, second = DataLoader(Numbers(12), batch_size=4), DataLoader(Numbers(12), batch_size=2)
    with profile(stacks=False) as p:
        pairs = list(zip(first, second, strict=False))
    assert len(pairs) == 3
    assert [info.batch_size for info in p.profile.loaders] == [4, 2]
    assert {batch.loader for batch in p.batches} == {0, 1}
    assert all(batch.samples == (4, 2)[batch.loader] for batch in p.batches)


def test_leaving_a_loop_early_ends_its_workers_as_it_always_did() -> None:
    loader = DataLoader(Numbers(400), batch_size=4, num_workers=2, multiprocessing_context="fork")
    with profile(stacks=False) as p:
        for number, _ in enumerate(loader):
            if number == 3:
                break
        assert not any(process.is_alive() for process in torch.multiprocessing.active_children())
    assert len(p.batches) == 4
    assert p.profile.epochs[0].end_ns is None


def test_recording_stops_after_so_many_batches_and_the_loop_goes_on() -> None:
    with profile(stacks=False, batches=3) as p:
        batches = run(DataLoader(Numbers(24), batch_size=4), 1)
    assert len(batches) == 6
    assert len(p.batches) == 3
    assert p.profile.stopped_early


def test_recording_of_very_many_batches_stops_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "MOST_BATCHES", 4)
    with profile(stacks=False) as p:
        batches = run(DataLoader(Numbers(24), batch_size=4), 1)
    assert (len(batches), len(p.batches)) == (6, 4)
    assert p.profile.stopped_early


def test_recording_stops_after_so_many_seconds_and_the_loop_goes_on() -> None:
    with profile(stacks=False, seconds=0.3) as p:
        batches = run(DataLoader(Numbers(40, sleep_s=0.05), batch_size=2), 1)
    assert len(batches) == 20
    assert 1 <= len(p.batches) < 20
    assert p.profile.stopped_early


def fail_in_the_loop(state: Any, before: Any) -> None:
    for _ in DataLoader(Numbers(8), batch_size=4):
        assert state() != before
        raise ZeroDivisionError


def test_nothing_stays_patched_after_an_exception() -> None:
    from torch.autograd import profiler
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch, worker

    def state() -> tuple[Any, ...]:
        return (
            profiler.record_function,
            DataLoader.__dict__["__iter__"],
            dataloader._BaseDataLoaderIter.__dict__["__next__"],
            fetch._MapDatasetFetcher,
            fetch._IterableDatasetFetcher,
            worker._worker_loop,
        )

    before = state()
    p = profile(stacks=False)
    with pytest.raises(ZeroDivisionError), p:
        fail_in_the_loop(state, before)
    assert state() == before
    assert p.profile.ended_by == "ZeroDivisionError"
    assert len(p.batches) == 1


def test_times_of_batches_and_fetches_fit_together() -> None:
    p, _ = recorded(
        lambda: DataLoader(
            Numbers(32, sleep_s=0.005), batch_size=4, num_workers=2, multiprocessing_context="fork"
        ),
        1,
    )
    fetch_of = {(fetch.epoch, fetch.task): fetch for fetch in p.profile.fetches}
    for batch in p.batches:
        fetch = fetch_of[batch.epoch, batch.task]
        assert fetch.start_ns < fetch.end_ns <= batch.wait_end_ns
        assert 0 <= fetch.collate_ns < fetch.fetch_ns
        assert fetch.cpu_ns < fetch.fetch_ns
        assert fetch.tensors == 3
    waits = [batch.wait_start_ns for batch in p.batches]
    assert waits == sorted(waits)
