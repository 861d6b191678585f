"""A loader is described and rebuilt without being touched; the code given builds the same."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, WeightedRandomSampler

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec, settings_of, spec_of
from tests.trial_loaders import Counting, Sleeping, random_states

DATA = Sleeping(20, 0.0)


def labels(loader: Any) -> list[Any]:
    return [torch.as_tensor(batch[1]).tolist() for batch in loader]


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(DATA, batch_size=3),
        lambda: DataLoader(DATA, batch_size=3, shuffle=True, drop_last=True),
        lambda: DataLoader(DATA, batch_size=None),
        lambda: DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 4, False)),
        lambda: DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 20, 30), batch_size=5),
        lambda: DataLoader(DATA, 4, shuffle=True, generator=torch.Generator().manual_seed(3)),
    ],
)
def test_a_rebuilt_loader_delivers_what_the_original_delivers(make: Any) -> None:
    original = make()
    copy = build(spec_of(original))
    torch.manual_seed(11)
    first = labels(copy)
    torch.manual_seed(11)
    assert labels(original) == first
    assert copy is not original


def test_drawing_from_a_rebuilt_loader_leaves_the_users_generator_where_it_was() -> None:
    generator = torch.Generator().manual_seed(3)
    sampler_generator = torch.Generator().manual_seed(4)
    sampler = RandomSampler(DATA, generator=sampler_generator)
    loader = DataLoader(DATA, 4, sampler=sampler, generator=generator)
    before = generator.get_state().tolist(), sampler_generator.get_state().tolist()
    labels(build(spec_of(loader)))
    assert (generator.get_state().tolist(), sampler_generator.get_state().tolist()) == before
    assert sampler.generator is sampler_generator


def test_describing_and_building_draw_nothing_from_the_global_random_random_states() -> None:
    loader = DataLoader(DATA, 4, shuffle=True, num_workers=2)
    before = random_states()
    build(spec_of(loader))
    code_of(spec_of(loader), spec_of(loader).changed(num_workers=0))
    assert random_states() == before


class Doubling(DataLoader[Any]):
    """A subclass with an __init__ and an __iter__ of its own."""

    def __init__(self, data: Any, factor: int) -> None:
        super().__init__(data, batch_size=4)
        self.factor = factor

    def __iter__(self) -> Any:
        for values, names in super().__iter__():
            yield values, names * self.factor


@pytest.mark.timeout(240)
def test_a_subclass_keeps_its_own_iteration_and_attributes() -> None:
    loader = Doubling(DATA, 2)
    spec = spec_of(loader)
    changed = build(spec.changed(num_workers=1))
    assert labels(changed) == labels(loader)
    assert (changed.num_workers, loader.num_workers) == (1, 0)
    assert "Doubling" in spec.notes[0]


def test_a_living_iterator_is_not_shared_with_the_copy() -> None:
    loader = Doubling(DATA, 2)
    loader._iterator = object()  # type: ignore[assignment]
    assert build(spec_of(loader))._iterator is None


def rebuilt(code: str, loader: Any) -> LoaderSpec:
    names: dict[str, Any] = {"loader": loader, "DataLoader": DataLoader}
    exec(code, names)
    return spec_of(names["loader"])


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(DATA, batch_size=3, shuffle=True, drop_last=True, collate_fn=list),
        DataLoader(DATA, batch_size=None),
        DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 4, False)),
        DataLoader(DATA, sampler=WeightedRandomSampler([1.0] * 20, 30), batch_size=5),
        DataLoader(Counting(9, True), batch_size=2),
    ],
)
def test_the_code_runs_and_builds_the_changed_loader(loader: Any) -> None:
    spec = spec_of(loader)
    wanted = spec.changed(num_workers=2, prefetch_factor=5, persistent_workers=True)
    made = rebuilt(code_of(spec, wanted), loader)
    assert settings_of(made) == settings_of(wanted)
    assert made.dataset is spec.dataset
    assert made.collate_fn is spec.collate_fn
    assert type(made.sampler) is type(spec.sampler)
    assert (made.batch_size, made.drop_last) == (spec.batch_size, spec.drop_last)


def test_the_code_marks_what_changed_and_leaves_out_defaults() -> None:
    spec = spec_of(DataLoader(DATA, batch_size=3))
    code = code_of(spec, spec.changed(num_workers=2))
    assert "num_workers=2,  # was 0" in code
    assert "prefetch_factor" not in code
    assert "pin_memory" not in code
    assert code_of(spec, spec) == ""


def test_the_code_imports_what_the_program_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(DataLoader(DATA, batch_size=3))
    wanted = spec.changed(num_workers=2)
    monkeypatch.delattr(sys.modules["__main__"], "DataLoader", raising=False)
    names: dict[str, Any] = {"loader": DataLoader(DATA, batch_size=3)}
    exec(code_of(spec, wanted), names)
    assert names["loader"].num_workers == 2
    monkeypatch.setattr(sys.modules["__main__"], "DataLoader", DataLoader, raising=False)
    assert code_of(spec, wanted).startswith("loader = DataLoader(")


def test_something_else_than_a_loader_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r"loader must be a torch DataLoader, got .*list.*pass"):
        spec_of([1, 2, 3])


def test_discard_covers_the_prefetched_batches_and_one_more_of_each_worker() -> None:
    assert spec_of(DataLoader(DATA)).discard == 1
    assert spec_of(DataLoader(DATA, num_workers=3, prefetch_factor=4)).discard == 15
