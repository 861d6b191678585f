"""Builds a new loader from a spec. The user's loader, samplers and generators stay as they are."""

from __future__ import annotations

import copy
import os
import random
from multiprocessing import parent_process
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.child import die_with_parent, prepare_libc
from jupyter_ioscope.trials.spec import LoaderSpec, loaded_data, start_method, takes_in_order

_PRIVATE_CONTEXT = "_DataLoader__multiprocessing_context"


class WithChanges:
    """A worker_init_fn that first makes the in-child changes and sees to it that the worker ends
    with its parent: workers that are not forked need it, because they start from a fresh
    interpreter."""

    def __init__(self, changes: tuple[Any, ...], inner: Any) -> None:
        self.changes = changes
        self.inner = inner

    def __call__(self, worker_id: int) -> None:
        end_with_parent()
        for change in self.changes:
            change.install()
        if self.inner is not None:
            self.inner(worker_id)


def end_with_parent() -> None:
    """Have this worker end when its parent is killed. torch's own watch over the parent begins
    only now, and would take whoever adopted the worker while it started for it."""
    prepare_libc()
    die_with_parent()
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(71)  # before the death signal was set


def build(spec: LoaderSpec, own: bool = True) -> Any:
    """A new DataLoader as the spec says. Random states are cloned: drawing from the new loader
    leaves the user's generators where they were. `in_child` is the caller's to install. Without
    `own` it shares samplers and generators with the user's loader, for a copy of the process."""
    values = _values(spec, own)
    if spec.state is None:
        return spec.loader_class(spec.dataset, **_arguments(spec, values))
    return _copy(spec, values)


def _values(spec: LoaderSpec, own: bool) -> dict[str, Any]:
    memo: dict[int, Any] = {}
    parts = {name: getattr(spec, name) for name in ("generator", "sampler", "batch_sampler")}
    if own:
        parts = {name: private(value, memo) for name, value in parts.items()}
    init = spec.worker_init_fn
    if start_method(spec) in ("spawn", "forkserver"):
        init = WithChanges(spec.in_child, init)
    some = spec.num_workers > 0
    return {
        "num_workers": spec.num_workers,
        "collate_fn": spec.collate_fn,
        "pin_memory": spec.pin_memory,
        "timeout": spec.timeout if some else 0,
        "worker_init_fn": init,
        "multiprocessing_context": spec.multiprocessing_context if some else None,
        "prefetch_factor": spec.prefetch if some else None,
        "persistent_workers": spec.persistent_workers and some,
        "in_order": spec.in_order,
        **parts,
    }


def _arguments(spec: LoaderSpec, values: dict[str, Any]) -> dict[str, Any]:
    arguments = {key: values[key] for key in values if key not in ("sampler", "batch_sampler")}
    if not takes_in_order():
        del arguments["in_order"]
    if spec.iterable:
        arguments |= {"batch_size": spec.batch_size, "drop_last": spec.drop_last}
    elif spec.batch_size is not None:
        arguments |= {
            "batch_size": spec.batch_size,
            "drop_last": spec.drop_last,
            "sampler": values["sampler"],
        }
    elif spec.batch_sampler is not None:
        arguments["batch_sampler"] = values["batch_sampler"]
    else:
        arguments |= {"batch_size": None, "sampler": values["sampler"]}
    return arguments


def _copy(spec: LoaderSpec, values: dict[str, Any]) -> Any:
    # DataLoader refuses to set some attributes after __init__; its __dict__ does not.
    loader: Any = object.__new__(spec.loader_class)
    attributes = dict(spec.state or {})
    context = values.pop("multiprocessing_context")
    attributes.update(values)
    attributes["dataset"] = spec.dataset
    attributes[_PRIVATE_CONTEXT] = context
    attributes["_iterator"] = None
    vars(loader).update(attributes)
    return loader


def private(value: Any, memo: dict[int, Any]) -> Any:
    """A copy of a sampler or generator whose random state is its own. Other values are returned
    as they are. `memo` keeps shared objects shared, as copy.deepcopy does."""
    if value is None or id(value) in memo:
        return memo.get(id(value))
    made = _private_copy(value, memo)
    memo[id(value)] = made
    return made


def _private_copy(value: Any, memo: dict[int, Any]) -> Any:
    if isinstance(value, random.Random):
        return copy.deepcopy(value)
    torch = loaded("torch")
    if torch is not None and isinstance(value, torch.Generator):
        clone = torch.Generator(device=value.device)
        clone.set_state(value.get_state())
        return clone
    numpy = loaded("numpy")
    if numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState)):
        return copy.deepcopy(value)
    if _is_sampler(value):
        return _private_sampler(value, memo)
    return value


def _is_sampler(value: Any) -> bool:
    if isinstance(value, (type, str, bytes, list, tuple, dict, range)):
        return False
    return isinstance(value, loaded_data().Sampler) or (
        hasattr(value, "__iter__") and "sampler" in type(value).__name__.lower()
    )


def _private_sampler(sampler: Any, memo: dict[int, Any]) -> Any:
    try:
        made = copy.copy(sampler)
    except Exception:
        return sampler  # a sampler that cannot be copied is shared; forked children have their own
    memo[id(sampler)] = made
    for name, value in list(getattr(made, "__dict__", {}).items()):
        own = private(value, memo)
        if own is not value:
            vars(made)[name] = own
    return made
