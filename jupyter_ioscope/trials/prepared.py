"""Loaders that Accelerate prepared, and those of the Hugging Face Trainer.

Accelerate puts a DataLoader into an object that says it is one: it moves batches to the device and,
where several ranks train, gives each rank its part. What is timed, and what toggles change, is the
DataLoader inside; the code that a user gets is written for what they wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import loaded

ACCELERATE, TRAINER = "accelerate", "trainer"


@dataclass(frozen=True)
class Prepared:
    """`by`: ACCELERATE or TRAINER. `ranks`: processes that share the samples out. `dispatched`:
    rank 0 fetches for all of them. `evaluates`: the loader of a Trainer's evaluation."""

    by: str
    wrapper: str  # its class
    ranks: int = 1
    dispatched: bool = False
    evaluates: bool = False

    def note(self) -> str:
        """What of the user's loop is not in a trial."""
        text = (
            f"Trials iterate the DataLoader inside the {self.wrapper}: moving batches to a device "
            "is not in them"
        )
        if self.ranks == 1:
            return text + "."
        if self.dispatched:
            return f"{text}, nor is handing them out to {self.ranks} ranks, which rank 0 does."
        return f"{text}, and they run for this rank alone, one of {self.ranks}."


class Inner(NamedTuple):
    loader: Any
    prepared: Prepared


def unwrapped(loader: Any) -> Inner | None:
    """The DataLoader inside a prepared one, or of a Trainer; None for others.

    Raises:
        InputError: a Trainer that cannot make its loader.
    """
    if _is_trainer(loader):
        return _described(_trainer_loader(loader), "train")
    kind = getattr(loaded("accelerate.data_loader"), "DataLoaderAdapter", None)
    # Not isinstance: the wrapper says that its class is DataLoader.
    if kind is None or not issubclass(type(loader), kind):
        return None
    return _described(loader, _trainers(loader))


def _trainers(wrapper: Any) -> str:
    """For what a Trainer made it, "train" or "eval"; empty where none did. A profile marks those
    that a Trainer was seen to iterate, and training loaders have a function of the Trainer's."""
    seen = getattr(wrapper, "_ioscope_trainer", "")
    init = getattr(wrapper.base_dataloader, "worker_init_fn", None)
    module = getattr(getattr(init, "func", init), "__module__", "") or ""
    return str(seen) or ("train" if module.startswith("transformers.") else "")


def _described(wrapper: Any, use: str) -> Inner:
    inner = getattr(wrapper, "base_dataloader", wrapper)  # older Trainers wrap nothing
    if not hasattr(inner, "batch_sampler"):
        raise InputError(
            f"{type(wrapper).__name__} holds no torch DataLoader: give the loader that your loop "
            "iterates"
        )
    dispatched = type(wrapper).__name__ == "DataLoaderDispatcher"
    ranks = getattr(inner.batch_sampler, "num_processes", 0) or getattr(
        inner.dataset, "num_processes", 0
    )
    if dispatched:
        ranks = getattr(getattr(wrapper, "state", None), "num_processes", 1)
    by = TRAINER if use else ACCELERATE
    name = type(wrapper).__name__
    return Inner(inner, Prepared(by, name, int(ranks or 1), dispatched, use == "eval"))


def _is_trainer(value: Any) -> bool:
    kind = getattr(loaded("transformers.trainer"), "Trainer", None)
    return kind is not None and isinstance(value, kind)


def _trainer_loader(trainer: Any) -> Any:
    """The loader that `trainer.train()` would iterate. The Trainer and the random state are left
    as they were: its Accelerator keeps a list of all loaders it prepared."""
    import torch

    known = getattr(getattr(trainer, "accelerator", None), "_dataloaders", [])
    length, state = len(known), torch.get_rng_state()
    try:
        return trainer.get_train_dataloader()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:300]
        raise InputError(f"get_train_dataloader() of the Trainer failed: {text}") from error
    finally:
        del known[length:]
        torch.set_rng_state(state)


def order_of(batch_sampler: Any) -> tuple[int, Any, bool] | None:
    """(batch size, sampler, drop_last) of torch's own BatchSampler, also where ranks share it out;
    None for one of the user's own."""
    import torch.utils.data

    inner = getattr(batch_sampler, "batch_sampler", batch_sampler)
    if type(inner) is not torch.utils.data.BatchSampler:
        return None
    return inner.batch_size, inner.sampler, inner.drop_last


def is_seedable(sampler: Any) -> bool:
    """Accelerate's random order, which stands for `shuffle=True`."""
    kind = getattr(loaded("accelerate.data_loader"), "SeedableRandomSampler", None)
    return kind is not None and type(sampler) is kind
