"""JPEG decoding by another library, below PIL's own objects, in a trial's child and its workers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.optional import need
from jupyter_ioscope.trials.toggles._pil_draft import DraftDecode

# (bytes, scale 1/2/4/8) -> array height x width x 3 of unsigned bytes in RGB, or None
Decode = Callable[[bytes, int], Any]


@dataclass(frozen=True)
class JpegSwap:
    """Pixels of colour JPEGs come from `library`. With a size (width, height), the picture is
    decoded at 1/2, 1/4 or 1/8, never below that size, as PIL's draft mode does.

    The image object stays PIL's: opened lazily, with its size, mode and metadata. Where the other
    library does not give a picture of the expected size, PIL decodes as ever.
    """

    library: str
    width: int = 0
    height: int = 0

    def install(self) -> None:
        from PIL import Image, JpegImagePlugin

        kind: Any = JpegImagePlugin.JpegImageFile
        original = kind.load
        if hasattr(original, "_ioscope_swap"):
            return
        if self.width:
            DraftDecode(self.width, self.height).install()
        decode = DECODERS[self.library]()

        @functools.wraps(original)
        def load(image: Any) -> Any:
            if _is_waiting(image):
                array = _decoded(image, decode)
                if array is not None:
                    _fill(image, Image.fromarray(array))
            return original(image)

        load._ioscope_swap = True  # type: ignore[attr-defined]
        kind.load = load

    @property
    def scale_text(self) -> str:
        return f"{self.width} x {self.height}" if self.width else "full size"


def _is_waiting(image: Any) -> bool:
    """Whether the picture is a colour JPEG of which nothing was decoded."""
    if image.mode != "RGB" or len(image.tile) != 1 or image.fp is None:
        return False
    name, _, offset, options = image.tile[0]
    raw = options[0] if isinstance(options, tuple) else options
    return bool(name == "jpeg" and offset == 0 and raw == "RGB")


def _decoded(image: Any, decode: Decode) -> Any:
    scale = image.decoderconfig[0] if image.decoderconfig else 1
    try:
        image.fp.seek(0)
        array = decode(image.fp.read(), scale)
    except Exception:
        return None  # PIL will say what is wrong with the file
    width, height = image.size
    return array if array is not None and array.shape == (height, width, 3) else None


def _fill(image: Any, other: Any) -> None:
    """Give `image` the pixels of `other`, as PIL does at the end of decoding."""
    image.im = other.im
    image.tile = []
    image.readonly = 0
    if getattr(image, "_exclusive_fp", False) and getattr(
        image, "_close_exclusive_fp_after_loading", True
    ):
        image.fp.close()
    image.fp = None


def _opencv() -> Decode:
    cv2: Any = need("cv2", "decoding with OpenCV")
    numpy: Any = need("numpy", "decoding with OpenCV")
    cv2.setNumThreads(1)  # workers are the threads; and a pool does not survive a fork
    direct = getattr(cv2, "IMREAD_COLOR_RGB", None)
    reduced = {
        2: cv2.IMREAD_REDUCED_COLOR_2,
        4: cv2.IMREAD_REDUCED_COLOR_4,
        8: cv2.IMREAD_REDUCED_COLOR_8,
    }

    def decode(data: bytes, scale: int) -> Any:
        packed = numpy.frombuffer(data, numpy.uint8)
        if scale == 1 and direct is not None:
            return cv2.imdecode(packed, direct | cv2.IMREAD_IGNORE_ORIENTATION)
        flag = reduced[scale] if scale > 1 else cv2.IMREAD_COLOR
        array = cv2.imdecode(packed, flag | cv2.IMREAD_IGNORE_ORIENTATION)
        return None if array is None else cv2.cvtColor(array, cv2.COLOR_BGR2RGB)

    return decode


def _simplejpeg() -> Decode:
    simplejpeg: Any = need("simplejpeg", "decoding with simplejpeg")

    def decode(data: bytes, scale: int) -> Any:
        options: dict[str, Any] = {"fastdct": True, "fastupsample": True}
        if scale > 1:
            height, width, *_ = simplejpeg.decode_jpeg_header(data)
            options |= {"min_height": height // scale, "min_width": width // scale}
        return simplejpeg.decode_jpeg(data, "RGB", **options)

    return decode


def _torchvision() -> Decode:
    import torch

    io: Any = need("torchvision.io", "decoding with torchvision")

    def decode(data: bytes, scale: int) -> Any:
        if scale > 1:
            return None  # it decodes at full size only
        packed = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        planes = io.decode_jpeg(packed, mode=io.ImageReadMode.RGB)
        return planes.permute(1, 2, 0).contiguous().numpy()

    return decode


DECODERS: dict[str, Callable[[], Decode]] = {
    "cv2": _opencv,
    "simplejpeg": _simplejpeg,
    "torchvision": _torchvision,
}
