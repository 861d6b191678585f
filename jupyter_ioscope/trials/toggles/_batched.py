"""Fetches a whole batch by one call of the dataset's own indexing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_ioscope.trials.spec import loaded_data

# How a dataset may understand many indices at once, in the order in which they are tried.
WAYS = ("array", "list", "tensor")


def many(indices: list[int], way: str) -> Any:
    """`indices` as what the dataset is indexed with."""
    if way == "array":
        import numpy

        return numpy.asarray(indices)
    if way == "tensor":
        import torch

        return torch.as_tensor(indices)
    return list(indices)


class Batched:
    """A map-style dataset whose batches come from one call: `dataset[indices]`, as tensors.

    Items one by one are the dataset's own. The loader needs `as_it_is` as its collate_fn, because
    what arrives is a batch already.
    """

    def __init__(self, dataset: Any, way: str) -> None:
        self.dataset, self.way = dataset, way

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> Any:
        return tensors(self.dataset[many(indices, self.way)])


def as_it_is(batch: Any) -> Any:
    """The collate function for batches that are complete."""
    return batch


def tensors(value: Any) -> Any:
    """Arrays as tensors, in containers as default_collate leaves them."""
    import numpy
    import torch

    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, numpy.ndarray):
        return torch.as_tensor(value)
    if isinstance(value, Mapping):
        return {key: tensors(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        return value
    if isinstance(value, (list, tuple)):
        return [tensors(inner) for inner in value]
    raise TypeError(f"{type(value).__name__} is not an array of a batch")


def is_default(collate_fn: Any) -> bool:
    """Whether a collate function is torch's own."""
    return collate_fn is loaded_data()._utils.collate.default_collate
