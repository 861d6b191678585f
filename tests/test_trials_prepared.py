"""Loaders of Accelerate and of the Hugging Face Trainer: seen through, timed, and written down as
their users write them. With the real libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import jupyter_ioscope as ioscope
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.prepared import ACCELERATE, TRAINER
from jupyter_ioscope.trials.spec import settings_of, spec_of
from jupyter_ioscope.trials.toggles import (
    batched_fetch,
    hf_format_torch,
    hf_stream_batches,
    workers,
)
from tests.toggle_checks import checked
from tests.trial_loaders import Counting, Sleeping, random_states

accelerate = pytest.importorskip("accelerate", reason="needs accelerate")
pytestmark = [pytest.mark.timeout(120), pytest.mark.beside]


@pytest.fixture(scope="module")
def accelerator() -> Any:
    return accelerate.Accelerator(cpu=True)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    arguments = transformers.TrainingArguments(
        str(tmp_path_factory.mktemp("trainer")),
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        max_steps=12,
    )
    return transformers.Trainer(Linear(), arguments, train_dataset=numbers())


class Linear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x: Any = None, labels: Any = None) -> Any:
        found = self.layer(x.float()).squeeze(-1)
        return {"loss": ((found - labels) ** 2).mean(), "logits": found}


def numbers(rows: int = 160) -> Any:
    made = {"x": [[k] * 8 for k in range(rows)], "labels": [k / rows for k in range(rows)]}
    return datasets.Dataset.from_dict(made)


def labels(loader: Any) -> list[Any]:
    return [torch.as_tensor(batch[1]).tolist() for batch in loader]


def test_the_loader_inside_is_rebuilt_with_the_batch_size_and_order_of_the_user(
    accelerator: Any,
) -> None:
    loader = accelerator.prepare(DataLoader(Sleeping(20, 0.0), batch_size=3, shuffle=True))
    before, known = random_states(), len(accelerator._dataloaders)
    spec = spec_of(loader)
    assert spec.prepared is not None
    assert (spec.prepared.by, spec.prepared.ranks) == (ACCELERATE, 1)
    assert spec.batch_size == 3
    assert "moving batches to a device is not in them" in spec.notes[0]
    copy = build(spec.changed(num_workers=1))
    assert copy.num_workers == 1
    assert (random_states(), len(accelerator._dataloaders)) == (before, known)
    torch.manual_seed(5)
    first = labels(build(spec))
    torch.manual_seed(5)
    assert labels(loader) == first
    assert loader.num_workers == 0


def test_the_code_prepares_what_was_changed(accelerator: Any) -> None:
    loader = accelerator.prepare(DataLoader(Sleeping(20, 0.0), 4, shuffle=True, drop_last=True))
    code = code_of(spec_of(loader), spec_of(loader).changed(num_workers=2))
    assert "\nloader = accelerator.prepare(DataLoader(\n    loader.dataset,\n" in code
    assert "shuffle=True" in code
    assert "num_workers=2,  # was 0" in code
    names: dict[str, Any] = {"loader": loader, "accelerator": accelerator, "DataLoader": DataLoader}
    exec(code, names)
    made = names["loader"]
    assert type(made) is type(loader)
    assert (made.num_workers, made.total_batch_size, len(made)) == (2, 4, 5)


def test_a_toggle_changes_the_loader_inside_and_delivers_the_same(accelerator: Any) -> None:
    loader = accelerator.prepare(DataLoader(numbers().with_format("torch"), 16, shuffle=True))
    spec, same = checked(loader, "batched_fetch")
    assert same.verdict == "identical"
    assert spec.prepared is not None
    assert "accelerator.prepare(" in batched_fetch.code(spec_of(loader))


@pytest.mark.parametrize("split", [False, True])
def test_a_rank_is_timed_for_its_own_part_and_the_code_is_for_all(split: bool) -> None:
    inner = DataLoader(Sleeping(24, 0.0), batch_size=4, shuffle=False)
    loader = accelerate.data_loader.prepare_data_loader(
        inner, num_processes=2, process_index=1, split_batches=split, put_on_device=False
    )
    spec = spec_of(loader)
    assert spec.prepared is not None
    assert spec.prepared.ranks == 2
    assert labels(build(spec)) == labels(loader)
    assert ("ranks", "2") in settings_of(spec)
    code = code_of(spec, spec.changed(num_workers=2))
    assert "batch_size=4" in code
    assert "batch_sampler" not in code


def test_a_dispatcher_is_seen_through() -> None:
    loader = accelerate.data_loader.prepare_data_loader(
        DataLoader(Counting(12, shared=True), 4), dispatch_batches=True, put_on_device=True
    )
    spec = spec_of(loader)
    assert spec.prepared is not None
    assert spec.prepared.dispatched
    assert spec.iterable
    assert [batch.tolist() for batch in build(spec)] == [batch.tolist() for batch in loader]


def test_a_stream_shared_among_ranks_keeps_its_part() -> None:
    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(range(16))

    loader = accelerate.data_loader.prepare_data_loader(
        DataLoader(Endless(), 4), num_processes=2, process_index=0, put_on_device=False
    )
    spec = spec_of(loader)
    assert spec.prepared is not None
    assert spec.prepared.ranks == 2
    assert [b.tolist() for b in build(spec)] == [[0, 1, 2, 3], [8, 9, 10, 11]]


def test_the_code_for_a_stream_of_ranks_gives_all_of_it() -> None:
    loader = accelerate.data_loader.prepare_data_loader(
        DataLoader(Counting(32, shared=True), 4),
        num_processes=2,
        process_index=0,
        put_on_device=False,
    )
    spec = spec_of(loader)
    code = code_of(spec, spec.changed(num_workers=1))
    assert "    loader.dataset.dataset,\n" in code
    assert "batch_size=4" in code


def test_a_profile_names_the_wrapper_and_keeps_a_copy_to_compare(accelerator: Any) -> None:
    loader = accelerator.prepare(DataLoader(Sleeping(24, 0.002), batch_size=4))
    with ioscope.profile(stacks=False) as profiled:
        assert len(list(loader)) == 6
    info = profiled.profile.loaders[0]
    assert info.class_name == "accelerate.data_loader.DataLoaderShard"
    assert (info.fact("prepared"), info.batch_size) == ("accelerate", 4)
    assert len(profiled.batches) == 6
    copy: Any = profiled.main_loader
    assert copy is not loader
    assert copy.base_dataloader is not loader.base_dataloader
    code = next(o.code for o in profiled.offers if o.name.startswith("workers") and o.code)
    assert "accelerator.prepare(" in code


def test_the_loader_of_a_trainer_takes_its_arguments(trainer: Any) -> None:
    before, known = random_states(), len(trainer.accelerator._dataloaders)
    spec = spec_of(trainer)
    assert (random_states(), len(trainer.accelerator._dataloaders)) == (before, known)
    assert spec.prepared is not None
    assert spec.prepared.by == TRAINER
    assert spec.batch_size == 8
    code = code_of(spec, spec.changed(num_workers=2, prefetch_factor=4, persistent_workers=True))
    assert code.startswith(
        "# TrainingArguments(..., dataloader_num_workers=2, dataloader_prefetch_factor=4, "
        "dataloader_persistent_workers=True)\n"
    )
    assert workers.code(spec_of(trainer.get_train_dataloader())) == workers.code(spec)


def test_the_code_for_a_trainer_does_what_it_says(
    trainer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(trainer)
    code = code_of(spec, spec.changed(num_workers=2, prefetch_factor=4))
    for name in ("dataloader_num_workers", "dataloader_prefetch_factor"):
        monkeypatch.setattr(trainer.args, name, getattr(trainer.args, name))
    monkeypatch.setattr(trainer, "train_dataset", trainer.train_dataset)
    exec(code + "\n" + hf_format_torch.TOGGLE.code(spec), {"trainer": trainer})
    made = trainer.get_train_dataloader()
    assert (made.num_workers, made.prefetch_factor) == (2, 4)
    assert trainer.train_dataset.format["type"] == "torch"


def test_a_training_run_is_profiled_and_its_toggles_are_options_of_the_trainer(
    trainer: Any,
) -> None:
    with ioscope.profile(stacks=False) as profiled:
        trainer.train()
    assert profiled.profile.loaders[0].fact("prepared") == "trainer"
    assert len(profiled.batches) >= 12
    code = next(o.code for o in profiled.offers if o.name.startswith("workers") and o.code)
    assert "TrainingArguments(..., dataloader_num_workers=" in code


def test_the_evaluation_of_a_trainer_is_known_by_who_iterates_it(trainer: Any) -> None:
    with ioscope.profile(stacks=False) as profiled:
        trainer.evaluate(numbers(32))
    spec = spec_of(profiled.main_loader)
    assert spec.prepared is not None
    assert (spec.prepared.by, spec.prepared.evaluates) == (TRAINER, True)
    assert "trainer.eval_dataset = dataset" in hf_format_torch.TOGGLE.code(spec)


def test_a_trainer_without_data_says_so(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    with pytest.raises(InputError, match="get_train_dataloader"):
        spec_of(transformers.Trainer(Linear(), arguments))


def test_what_a_trainer_does_itself_is_not_taken_from_it(trainer: Any) -> None:
    spec = spec_of(trainer).changed(collate_fn=torch.utils.data.default_collate)
    assert "a Trainer looks at each row" in batched_fetch.refuse(spec)
    stream = spec.changed(dataset=numbers().to_iterable_dataset(), iterable=True)
    assert "a Trainer joins the rows" in hf_stream_batches.refuse(stream)
    changed = stream.changed(written=(("dataset", "dataset"),))
    assert "max_steps=..." in code_of(stream, changed)


def test_a_comparison_of_a_trainers_loader_runs(trainer: Any) -> None:
    found = ioscope.compare(trainer, toggles="hf_format_torch", budget_s=3)
    assert found.same_data.verdict == "identical"
    assert found.arms[1].toggles == ("hf_format_torch",)
