"""Samples to bytes and back. Arrays and tensors are kept apart from the pickle, so that a hit is
one copy out of shared memory and no copy more."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

from jupyter_ioscope.optional import loaded

_ALIGN = 64
_PADDING = bytes(_ALIGN)


def encoded(sample: Any) -> list[Any]:
    """Bytes-like parts which, joined, `decoded` turns into an equal sample.

    Raises:
        Exception: whatever pickling the sample raises; it cannot be stored then.
    """
    buffers: list[memoryview] = []
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=5, buffer_callback=lambda one: buffers.append(one.raw()))
    pickler.dump(sample)
    body = stream.getbuffer()
    head = struct.pack(f"<{2 + len(buffers)}Q", len(buffers), len(body), *map(len, buffers))
    parts: list[Any] = [head, body]
    at = len(head) + len(body)
    for buffer in buffers:
        gap = -at % _ALIGN
        parts += [_PADDING[:gap], buffer]
        at += gap + len(buffer)
    return parts


def decoded(data: bytearray) -> Any:
    """The sample; its arrays are views of `data`, and can be written to as any array."""
    number, length = struct.unpack_from("<2Q", data)
    view = memoryview(data)
    sizes = struct.unpack_from(f"<{number}Q", data, 16)
    at = 16 + 8 * number
    body = view[at : at + length]
    at += length
    buffers = []
    for size in sizes:
        at += -at % _ALIGN
        buffers.append(view[at : at + size])
        at += size
    return pickle.loads(body, buffers=buffers)


class _Pickler(pickle.Pickler):
    """Plain dense tensors go as arrays: torch's own way of pickling them takes ten times longer."""

    def reducer_override(self, value: Any) -> Any:
        torch = loaded("torch")
        if torch is None or type(value) is not torch.Tensor or not _plain(value, torch):
            return NotImplemented
        name = str(value.dtype).removeprefix("torch.")
        flat = value.detach().contiguous()
        try:
            return _tensor, (flat.numpy(), "")
        except TypeError:  # a type that numpy does not have, such as bfloat16
            if value.dim() == 0:
                return NotImplemented
            return _tensor, (flat.view(torch.uint8).numpy(), name)


def _plain(value: Any, torch: Any) -> bool:
    return (
        value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.requires_grad
        and not value.is_quantized
        and not value.is_conj()
        and not value.is_neg()
    )


def _tensor(array: Any, dtype: str) -> Any:
    import torch

    made = torch.from_numpy(array)
    return made.view(getattr(torch, dtype)) if dtype else made
