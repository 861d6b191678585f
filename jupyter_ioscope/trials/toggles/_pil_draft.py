"""Asks PIL's JPEG decoder for a smaller picture, in a trial's child only."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.toggle import raise_if
from jupyter_ioscope.units import significant


@dataclass(frozen=True)
class DraftDecode:
    """`img.draft("RGB", (width, height))` after every `Image.open` of a JPEG. PIL then decodes at
    1/2, 1/4 or 1/8 of the size, whichever is the smallest that is not below width x height."""

    width: int
    height: int

    def install(self) -> None:
        from PIL import Image, JpegImagePlugin

        original = Image.open
        if getattr(original, "_ioscope_draft", False):
            return  # a spawned worker's init may run in a process that has it already
        jpeg, size = JpegImagePlugin.JpegImageFile, (self.width, self.height)

        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            image = original(*args, **kwargs)
            if isinstance(image, jpeg):
                image.draft("RGB", size)
            return image

        opened._ioscope_draft = True  # type: ignore[attr-defined]
        Image.open = opened

    def code(self) -> str:
        return (
            "# in the dataset, right after the image is opened:\n"
            "img = Image.open(path)\n"
            f'img.draft("RGB", ({self.width}, {self.height}))'
        )


def patch_for(facts: dict[str, Any]) -> DraftDecode:
    """The patch that fits what was seen.

    Raises:
        TrialError: draft mode would be wrong or useless here; the text says why.
    """
    raise_if(_refusal(facts), "draft_decode")
    return DraftDecode(*_largest(facts))


def _largest(facts: dict[str, Any]) -> tuple[int, int]:
    targets = [track["target"] for track in facts["tracks"]]
    return max(width for width, _ in targets), max(height for _, height in targets)


def _refusal(facts: dict[str, Any]) -> str:
    tracks, seen = facts["tracks"], facts["images"]
    if not seen:
        return f"none of the first {facts['samples']} samples opened an image with PIL"
    if not facts["jpegs"]:
        return f"none of the {seen} images opened by the first samples is a JPEG"
    if not tracks:
        return "the JPEGs that are opened are never decoded"
    for track in tracks:
        reason = _reason(track["first"], track["boxed"])
        if reason:
            return reason
    wide, high = _largest(facts)
    scale = max(min(t["source"][0] / wide, t["source"][1] / high) for t in tracks)
    if scale < 2:
        return (
            f"the pictures are only {significant(scale, 2)} times as large as the "
            f"{wide} x {high} they are resized to; draft mode begins at 2 times"
        )
    return ""


def _reason(first: str, boxed: bool) -> str:
    if first == "draft":
        return "the dataset asks for draft mode itself"
    if first == "thumbnail of the file":
        return "Image.thumbnail on a file that is not decoded yet uses draft mode by itself"
    if boxed:
        return "a box in source coordinates is resized, and a smaller decode moves it"
    if first in ("resize", "thumbnail"):
        return ""
    if first in ("crop", "rotate", "transform", "reduce"):
        return f"Image.{first} comes before any resize, so the picture is used at full size"
    return f"its pixels are used at full size (Image.{first}) before any resize"
