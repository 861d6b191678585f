"""What describes a torch DataLoader, so that another one like it, or nearly, can be built."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from jupyter_ioscope.capture.loaders.hf_datasets import Looped
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.records import DEFAULT_PREFETCH
from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials import prepared as wrapped

LOOK_S = 6.0  # enough for slow samples, short beside a usual budget


class InChild(Protocol):
    """A change made inside a trial's child process only (and in its workers). Picklable."""

    def install(self) -> None: ...


@dataclass(frozen=True)
class LoaderSpec:
    """A torch DataLoader as values. The objects it names are the user's and are never changed.

    `state` holds the attributes of a subclass whose `__init__` cannot be relied on; it is None
    when the loader can be built by calling its class with DataLoader's own arguments.
    `in_child` are changes of the process the loader will run in, made in a trial's child only.
    `before` and `written` are what a user would write for changes that settings cannot say: lines
    that come first, and (argument, expression) pairs. `direct`: the loop iterates a dataset itself,
    not a DataLoader. `prepared`: what stands around the DataLoader. `rows` delivers the numbers of
    A's rows in the order in which this spec delivers the rows, where the order is another one.
    `rows_in_batch`: the dataset makes batches of so many rows itself (`stream.batch(n)`,
    `dataset.iter(n)`); None where an item is a sample. `folder` and `look_s` are for `Toggle.learn`
    only: files left there live as long as the comparison, and a look at samples may take so many
    seconds.
    """

    loader_class: type
    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    num_workers: int = 0
    collate_fn: Any = None
    pin_memory: bool = False
    drop_last: bool = False
    timeout: float = 0
    worker_init_fn: Any = None
    multiprocessing_context: Any = None
    generator: Any = None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    in_order: bool = True
    iterable: bool = False
    state: Mapping[str, Any] | None = None
    in_child: tuple[InChild, ...] = ()
    notes: tuple[str, ...] = field(default=())
    before: tuple[str, ...] = ()
    written: tuple[tuple[str, str], ...] = ()
    direct: bool = False
    rows: LoaderSpec | None = None
    folder: str = ""
    look_s: float = LOOK_S
    prepared: wrapped.Prepared | None = None
    rows_in_batch: int | None = None

    @property
    def prefetch(self) -> int:
        """Batches prefetched per worker; 0 without workers."""
        if self.num_workers == 0:
            return 0
        return DEFAULT_PREFETCH if self.prefetch_factor is None else self.prefetch_factor

    @property
    def shards(self) -> int:
        """Shards of a stream, each read by one worker; 0 where it does not say."""
        count = getattr(self.dataset, "num_shards", None) if self.iterable else None
        return count if isinstance(count, int) and count > 0 else 0

    @property
    def discard(self) -> int:
        """Batches after a start that say nothing about the steady state: workers x prefetch are
        ready from the start, and each worker's first batch carries its own start-up."""
        return max(1, self.num_workers * self.prefetch + self.num_workers)

    def changed(self, **changes: Any) -> LoaderSpec:
        """The same spec with some fields replaced."""
        return replace(self, **changes)


def is_loader(value: Any) -> bool:
    """Whether `value` is a torch DataLoader. torch is not imported to find out."""
    torch_data = loaded("torch.utils.data")
    return torch_data is not None and isinstance(value, torch_data.DataLoader)


def spec_of(loader: Any, argument: str = "loader") -> LoaderSpec:
    """Describe a torch DataLoader (also one that Accelerate prepared), the training loader of a
    Hugging Face Trainer, or a Hugging Face dataset (or an object around one) that a loop iterates
    itself; nothing of it is touched or iterated.

    Raises:
        InputError: `loader` is none of them.
    """
    inner = wrapped.unwrapped(loader)
    if inner is not None:
        return _inside(spec_of(inner.loader, argument), inner.prepared)
    from jupyter_ioscope.trials.hf_spec import direct_spec, rows_in_batch

    if not is_loader(loader):
        looped = loader if isinstance(loader, Looped) else Looped(loader, None)
        direct = direct_spec(*looped)
        if direct is not None:
            return direct
        text = repr(type(loader))
        raise InputError(
            f"{argument} must be a torch DataLoader, got {text}; "
            "pass the object that your training loop iterates"
        )
    own_init = type(loader).__init__ is not _plain_class().__init__
    spec = LoaderSpec(
        loader_class=getattr(type(loader), "_ioscope_of", type(loader)),
        dataset=loader.dataset,
        batch_size=loader.batch_size,
        sampler=loader.sampler,
        batch_sampler=loader.batch_sampler,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=bool(loader.pin_memory),
        drop_last=bool(loader.drop_last),
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator,
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=bool(loader.persistent_workers),
        in_order=bool(getattr(loader, "in_order", True)),
        iterable=isinstance(loader.dataset, loaded_data().IterableDataset),
        state=_state(loader) if type(loader) is not _plain_class() else None,
        rows_in_batch=rows_in_batch(loader.dataset) if loader.batch_size is None else None,
    )
    if own_init:
        name = type(loader).__name__
        note = (
            f"{name} has its own __init__, so each trial used a copy of the loader "
            "with the changed settings instead of building a new one"
        )
        return spec.changed(notes=(note,))
    return spec


def _inside(spec: LoaderSpec, prepared: wrapped.Prepared) -> LoaderSpec:
    """The DataLoader inside a prepared one, with the batch size and the order that the user gave:
    Accelerate passes them on as a batch_sampler."""
    spec = spec.changed(prepared=prepared, notes=(*spec.notes, prepared.note()))
    order = wrapped.order_of(spec.batch_sampler)
    if spec.state is not None or spec.batch_size is not None or order is None:
        return spec
    if prepared.ranks > 1 and not prepared.dispatched:
        return spec  # the batch_sampler gives this rank its part
    batch_size, sampler, drop_last = order
    return spec.changed(batch_size=batch_size, sampler=sampler, drop_last=drop_last)


def loaded_data() -> Any:
    """torch.utils.data, which is loaded wherever a DataLoader exists."""
    import torch.utils.data

    return torch.utils.data


def _plain_class() -> Any:
    return loaded_data().DataLoader


def _state(loader: Any) -> dict[str, Any]:
    # A live iterator holds running workers: it belongs to the user and must not be shared.
    return {key: value for key, value in vars(loader).items() if key != "_iterator"}


def takes_in_order() -> bool:
    """Whether this torch knows `in_order` (2.6 and newer)."""
    return "in_order" in inspect.signature(_plain_class().__init__).parameters


def start_method(spec: LoaderSpec) -> str:
    """How this spec's workers are started: "fork", "spawn" or "forkserver"; "" without workers."""
    if spec.num_workers == 0:
        return ""
    import torch.multiprocessing

    context = spec.multiprocessing_context or torch.multiprocessing
    return str(context.get_start_method())


def settings_of(spec: LoaderSpec) -> tuple[tuple[str, str], ...]:
    """The settings of an arm as text, for people."""
    rows: list[tuple[str, object]] = [
        (
            "batch_size",
            spec.batch_size
            if spec.batch_sampler is None or spec.batch_size
            else "from batch_sampler",
        ),
        ("num_workers", spec.num_workers),
        ("prefetch_factor", spec.prefetch if spec.num_workers else "–"),
        ("persistent_workers", spec.persistent_workers),
        ("pin_memory", spec.pin_memory),
        ("in_order", spec.in_order),
    ]
    if spec.num_workers:
        rows.append(("start method", start_method(spec)))
    if spec.prepared is not None and spec.prepared.ranks > 1:
        rows.append(("ranks", spec.prepared.ranks))
    return tuple((name, str(value)) for name, value in rows)
