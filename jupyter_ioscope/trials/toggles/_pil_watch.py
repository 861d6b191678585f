"""Watches what a program does with the JPEG images it opens through PIL, in a trial's child only.

PIL decodes lazily, so a smaller decode can be asked for after `Image.open` and before the first
use of pixels. Whether that is right depends on that first use: a resize to a given size is, a crop
in source coordinates is not.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# The result still holds the whole picture, so the next operation decides.
_KEEPS = ("convert", "copy", "transpose")
# Image.transpose methods that swap width and height: ROTATE_90, ROTATE_270, TRANSPOSE, TRANSVERSE.
_SWAPS = (2, 4, 5, 6)
# Anything else that looks at pixels or geometry of the full-size picture.
_USES = (
    "crop", "rotate", "transform", "reduce", "filter", "paste", "point", "split", "getchannel",
    "getpixel", "putpixel", "getdata", "get_flattened_data", "tobytes", "histogram", "getbbox",
    "getcolors", "getextrema", "quantize", "putalpha", "alpha_composite", "effect_spread",
    "entropy", "getprojection", "remap_palette", "save",
)  # fmt: skip


@dataclass
class Track:
    """One opened JPEG: its size, and what was done first with the full-size picture."""

    source: tuple[int, int]
    first: str = ""  # "" until decided
    target: tuple[int, int] = (0, 0)
    boxed: bool = False
    swapped: bool = False

    def decide(self, first: str, target: tuple[int, int] = (0, 0), boxed: bool = False) -> None:
        if not self.first:
            self.first, self.boxed = first, boxed
            self.target = (target[1], target[0]) if self.swapped else target


class PilWatch:
    """Patches PIL for good: only for processes that end soon after (a learning child)."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.others = 0  # images that are not JPEG
        self._busy = threading.local()

    def install(self) -> None:
        from PIL import Image, JpegImagePlugin

        jpeg: Any = JpegImagePlugin.JpegImageFile
        Image.open = self._open(Image.open, jpeg)
        for name in _KEEPS:
            self._wrap(Image.Image, name, self._keeps)
        for name in _USES:
            self._wrap(Image.Image, name, self._uses)
        self._wrap(Image.Image, "resize", self._resize)
        self._wrap(Image.Image, "thumbnail", self._thumbnail)
        self._wrap(jpeg, "draft", self._draft)

    def _open(self, original: Callable[..., Any], jpeg: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            image = original(*args, **kwargs)
            if isinstance(image, jpeg):
                track = Track(image.size)
                self.tracks.append(track)
                image._ioscope_track = track
            else:
                self.others += 1
            return image

        return opened

    def _wrap(self, owner: Any, name: str, note: Callable[..., None]) -> None:
        original = getattr(owner, name, None)
        if original is None:  # not in this release of PIL
            return

        @functools.wraps(original)
        def wrapped(image: Any, *args: Any, **kwargs: Any) -> Any:
            track = getattr(image, "_ioscope_track", None)
            if track is None or track.first or getattr(self._busy, "on", False):
                return original(image, *args, **kwargs)
            # PIL calls its own methods inside others: only the outermost call is the user's.
            self._busy.on = True
            try:
                note(track, name, image, *args, **kwargs)
                result = original(image, *args, **kwargs)
            finally:
                self._busy.on = False
            if name in _KEEPS and hasattr(result, "size") and not track.first:
                result._ioscope_track = track
            return result

        setattr(owner, name, wrapped)

    def _keeps(self, track: Track, name: str, image: Any, *args: Any, **kwargs: Any) -> None:
        method = args[0] if args else kwargs.get("method", -1)
        if name == "transpose" and method in _SWAPS:
            track.swapped = not track.swapped

    def _uses(self, track: Track, name: str, image: Any, *args: Any, **kwargs: Any) -> None:
        track.decide(name)

    def _resize(
        self, track: Track, name: str, image: Any, size: Any, resample: Any = None,
        box: Any = None, *rest: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        whole = box is None or tuple(box) == (0, 0, *image.size)
        track.decide("resize", (int(size[0]), int(size[1])), boxed=not whole)

    def _thumbnail(
        self, track: Track, name: str, image: Any, size: Any, *rest: Any, **kwargs: Any
    ) -> None:
        # thumbnail asks for draft mode itself when the picture is still the opened file.
        own = hasattr(image, "draft") and hasattr(image, "tile") and bool(image.tile)
        wide, high = image.size
        scale = min(1.0, float(size[0]) / wide, float(size[1]) / high)
        target = (max(1, round(wide * scale)), max(1, round(high * scale)))
        track.decide("thumbnail of the file" if own else "thumbnail", target)

    def _draft(self, track: Track, name: str, image: Any, *args: Any, **kwargs: Any) -> None:
        track.decide("draft")
