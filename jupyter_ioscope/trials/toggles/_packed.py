"""Hands the tensors of a batch over as a few large ones.

A worker joins all tensors of one type into one. Pickling such a batch writes the large tensors and
the layout; unpickling gives the batch as it was, its tensors being views.
"""

from __future__ import annotations

from typing import Any

LEAST = 2  # tensors, from which on joining them pays
LARGEST_BYTES = 65_536  # a larger one gains nothing by company, and joining copies it once more


class PackedCollate:
    """A collate_fn: the user's own, with its batch packed for the way to the main process."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, samples: Any) -> Any:
        batch = self.inner(samples)
        tensors: list[Any] = []
        layout = _layout(batch, tensors)
        return Packed(tensors, layout) if len(tensors) >= LEAST else batch


class Packed:
    """A batch on its way; what arrives is the batch itself."""

    def __init__(self, tensors: list[Any], layout: Any) -> None:
        self.tensors, self.layout = tensors, layout

    def __reduce__(self) -> Any:
        import torch

        groups: dict[Any, list[int]] = {}
        for number, tensor in enumerate(self.tensors):
            groups.setdefault(tensor.dtype, []).append(number)
        joined, places = [], []
        for numbers in groups.values():
            joined.append(torch.cat([self.tensors[n].reshape(-1) for n in numbers]))
            places.append([(n, tuple(self.tensors[n].shape)) for n in numbers])
        return unpacked, (joined, places, self.layout)


def unpacked(
    joined: list[Any], places: list[list[tuple[int, tuple[int, ...]]]], layout: Any
) -> Any:
    """The batch: views of the joined tensors where its tensors were."""
    found: dict[int, Any] = {}
    for whole, rows in zip(joined, places, strict=True):
        sizes = [_size(shape) for _, shape in rows]
        for (number, shape), part in zip(rows, whole.split(sizes), strict=True):
            found[number] = part.view(shape)
    return _filled(layout, found)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


class _Place(int):
    """Stands for a tensor in a layout, by its number."""


def _layout(value: Any, tensors: list[Any]) -> Any:
    import torch

    if type(value) is torch.Tensor and _is_plain(value, torch):
        tensors.append(value)
        return _Place(len(tensors) - 1)
    if type(value) is dict:
        return {key: _layout(inner, tensors) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_layout(inner, tensors) for inner in value)
    return value


def _is_plain(tensor: Any, torch: Any) -> bool:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    small = tensor.numel() * tensor.element_size() <= LARGEST_BYTES
    return bool(plain and small and not tensor.requires_grad)


def _filled(layout: Any, found: dict[int, Any]) -> Any:
    if type(layout) is _Place:
        return found[layout]
    if type(layout) is dict:
        return {key: _filled(inner, found) for key, inner in layout.items()}
    if type(layout) in (list, tuple):
        return type(layout)(_filled(inner, found) for inner in layout)
    return layout
