"""What a DataLoader tells about itself, and the copy of it that comparisons start from."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.capture.loaders._hf_facts import facts_of
from jupyter_ioscope.capture.loaders._prepared import Around
from jupyter_ioscope.model.records import LoaderInfo


def describe(loader: Any, number: int, outside: Around | None = None) -> LoaderInfo:
    """A DataLoader as the user configured it. Reads plain attributes only."""
    dataset = loader.dataset
    iterable = getattr(loader, "_dataset_kind", 0) == 1
    return LoaderInfo(
        loader=number,
        library="torch",
        class_name=_class_name(outside.wrapper if outside else loader),
        dataset_class=_class_name(dataset),
        dataset_kind="iterable" if iterable else "map",
        num_workers=int(loader.num_workers),
        batch_size=_batch_size(loader),
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=bool(loader.persistent_workers),
        pin_memory=bool(loader.pin_memory),
        in_order=bool(getattr(loader, "in_order", True)),
        start_method=_start_method(loader) if loader.num_workers else None,
        samples_total=None if iterable else _samples_total(loader.sampler),
        workers_before_profile=_running_workers(loader),
        facts=(
            *facts_of(dataset),
            *_collate_fact(loader),
            *(outside.facts() if outside else ()),
        ),
    )


def _samples_total(sampler: Any) -> int | None:
    """How many samples one of torch's own samplers gives. The length of another is the user's code:
    to find it, samplers draw random numbers or go through their data."""
    length = getattr(type(sampler), "__len__", None)
    if not str(getattr(length, "__module__", "")).startswith("torch."):
        return None
    try:
        return len(sampler)
    except Exception:  # it asks the user's dataset, which may raise anything
        return None


def _collate_fact(loader: Any) -> tuple[tuple[str, str], ...]:
    """("collate", "torch") where torch's own function joins the items, else "own"."""
    function = getattr(loader, "collate_fn", None)
    if function is None:
        return ()
    module = getattr(function, "__module__", None)
    return (("collate", "torch" if module == "torch.utils.data._utils.collate" else "own"),)


def snapshot(loader: Any) -> Any:
    """A copy of a loader for later comparisons: same parts, but no iterator and no workers."""
    copy = object.__new__(without_del(type(loader)))
    copy.__dict__.update(loader.__dict__)
    for name, value in loader.__dict__.items():
        if _is_iterator(value):  # it would keep its workers alive after the loader is gone
            copy.__dict__[name] = None
    copy.__dict__["_iterator"] = None
    return copy


def without_del(kind: Any) -> Any:
    """The class of a loader; one without its `__del__` where it has one, which would close what the
    copy shares with the user's loader. `_ioscope_of` then names the class itself."""
    if not hasattr(kind, "__del__"):
        return kind
    plain = next(base for base in kind.__mro__ if base.__name__ == "DataLoader")
    body = {"__del__": lambda _: None, "_ioscope_of": kind, "__module__": kind.__module__}
    made = type(kind.__name__, (plain,), {**body, "__qualname__": kind.__qualname__})
    made.__bases__ = (kind,)  # not at once: that would call the user's `__init_subclass__`
    return made


def _is_iterator(value: Any) -> bool:
    return any(base.__name__ == "_BaseDataLoaderIter" for base in type(value).__mro__)


def _class_name(value: Any) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "__main__"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _batch_size(loader: Any) -> int | None:
    size = loader.batch_size
    if size is None:
        size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _start_method(loader: Any) -> str | None:
    import multiprocessing

    context = loader.multiprocessing_context
    if context is None:
        return (
            multiprocessing.get_start_method(allow_none=True)
            or multiprocessing.get_context().get_start_method()
        )
    return str(context.get_start_method())


def _running_workers(loader: Any) -> bool:
    # Not its truth value: that asks for its length, which a stream does not have.
    return getattr(loader, "_iterator", None) is not None and loader.num_workers > 0


def describe_iterator(iterator: Any, number: int) -> LoaderInfo:
    """An iterator that was made before the profile: what it still tells about its loader."""
    return LoaderInfo(
        loader=number,
        library="torch",
        class_name="torch.utils.data.dataloader.DataLoader",
        dataset_class=_class_name(iterator._dataset),
        dataset_kind="iterable" if iterator._dataset_kind == 1 else "map",
        num_workers=int(iterator._num_workers),
        batch_size=getattr(iterator._index_sampler, "batch_size", None),
        prefetch_factor=getattr(iterator, "_prefetch_factor", None),
        persistent_workers=bool(iterator._persistent_workers),
        pin_memory=bool(iterator._pin_memory),
        in_order=bool(getattr(iterator, "_in_order", True)),
        workers_before_profile=iterator._num_workers > 0,
    )
