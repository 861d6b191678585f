"""What the user's own classes do when they are asked, copied or dropped is theirs to decide."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, Sampler  # noqa: E402

from jupyter_ioscope.api import profile  # noqa: E402
from jupyter_ioscope.trials.spec import spec_of  # noqa: E402
from tests.loaders_under_test import Numbers  # noqa: E402

pytestmark = pytest.mark.timeout(120)


class Drawing(Sampler[int]):
    """Finds out its length by chance, as samplers do that put samples into buckets."""

    asked = 0

    def __init__(self) -> None:
        pass

    def __len__(self) -> int:
        Drawing.asked += 1
        return random.randint(4, 8)

    def __iter__(self) -> Iterator[int]:
        return iter(range(8))


def test_the_length_of_a_users_sampler_is_not_asked_for() -> None:
    random.seed(3)
    state = random.getstate()
    with profile(stacks=False) as p:
        for _ in DataLoader(Numbers(8), batch_size=4, sampler=Drawing()):
            pass
    assert (Drawing.asked, p.profile.loaders[0].samples_total) == (0, None)
    random.setstate(state)
    with profile(stacks=False) as p:
        list(DataLoader(Numbers(8), batch_size=4, shuffle=True))
    assert p.profile.loaders[0].samples_total == 8


class Closing(DataLoader[Any]):
    """Closes what it shares with others when it goes."""

    closed = 0
    known: ClassVar[list[type]] = []

    def __init_subclass__(cls) -> None:
        Closing.known.append(cls)

    def __del__(self) -> None:
        Closing.closed += 1


def test_the_copy_for_comparisons_does_not_run_the_loaders_del() -> None:
    loader = Closing(Numbers(8), batch_size=4)
    with profile(stacks=False) as p:
        list(loader)
    assert p.main_loader is not None
    assert isinstance(p.main_loader, Closing)
    assert spec_of(p.main_loader).loader_class is Closing
    assert p.profile.loaders[0].class_name.endswith("Closing")
    del p
    gc.collect()
    assert (Closing.closed, Closing.known) == (0, [])
    del loader
    assert Closing.closed == 1


class KeepsItsIterator(DataLoader[Any]):
    mine: Any = None

    def __iter__(self) -> Any:
        self.mine = super().__iter__()
        return self.mine


def test_workers_end_with_the_loader_that_kept_their_iterator() -> None:
    loader = KeepsItsIterator(
        Numbers(400), batch_size=4, num_workers=1, multiprocessing_context="fork"
    )
    next(iter(loader))  # its workers wait for more
    worker = loader.mine._workers[0]
    with profile(stacks=False) as p:
        for _ in loader:
            break
    kept = loader.mine._workers[0]
    del loader
    gc.collect()
    assert not worker.is_alive()
    assert not kept.is_alive()
    assert p.main_loader is not None
