"""Pictures are decoded with many more pixels than the batch holds."""

from __future__ import annotations

import os
from collections import Counter
from statistics import fmean

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    cpu_ns_per_sample,
    gain_of_work,
    ns_per_sample,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import nanoseconds, significant

_PIXELS = ("image_decode", "image_resize", "image_other")
# A sample of fewer bytes holds no picture: what was decoded was reduced to numbers.
_LEAST_PICTURE_BYTES = 3 * 32 * 32
# So many times as many pixels as are used.
_OVERSIZED = 4.0
# Decoding takes 10 ns (JPEG) to 100 ns (PNG) a pixel. Where no header tells the size, this much a
# pixel that is used means that many more were decoded.
_NS_A_PIXEL = 300.0
# JPEG can be decoded at an eighth of its width, which takes about this part of the time.
_LEAST_LEFT = 0.15
# Formats whose decoders give all pixels, whatever size is asked for.
_WHOLE = (".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if no more pixels were decoded than are used. Only where pictures
    are resized: who cuts a piece out, or counts all pixels, needs them as they are."""
    if not facts.batches or not facts.work.fraction("image_decode")[0]:
        return None
    if not facts.work.resizes:
        return None
    used = _used_pixels(facts)
    if not used:
        return None
    decoded = _decoded_pixels(facts)
    # No more than the CPU: a file that is read late inside the decoder is no large picture.
    pixel_ns = min(ns_per_sample(facts, "image_decode"), cpu_ns_per_sample(facts)) / used
    by_time = not decoded and pixel_ns >= _NS_A_PIXEL
    if not by_time and decoded < _OVERSIZED * used:
        return None
    whole = _only_whole(facts)
    left = max(_LEAST_LEFT, used / decoded) if decoded else _LEAST_LEFT
    return finding(
        facts,
        gain_of_work(facts, *_PIXELS, saved=1 - left),
        cause="oversized_decode",
        resource=resource(facts),
        title="Pictures are decoded much larger than they are used",
        evidence=(
            _size_line(decoded, used)
            if decoded
            else f"Decoding takes {nanoseconds(pixel_ns)} a pixel that is used; decoding pictures "
            "of that size takes 10 to 100 ns.",
            seen_line(facts, "decoding and resizing pictures", *_PIXELS),
            place_line(facts, *_PIXELS),
        ),
        advice=_advice(facts, whole),
        toggles=_toggles(facts, whole),
        where=facts.work.where(*_PIXELS),
        refines=(*CPU_CAUSES, "repeated_deterministic_transform"),
    )


def _only_whole(facts: Facts) -> str:
    """The ending of most files, where it is of a format that is decoded whole or not at all."""
    endings = Counter(os.path.splitext(row.path)[1].lower() for row in facts.profile.images)
    ending, count = endings.most_common(1)[0] if endings else ("", 0)
    return ending if ending in _WHOLE and 2 * count > endings.total() else ""


def _advice(facts: Facts, whole: str) -> str:
    if whole:
        return (
            f"Shrink the files once to a little above the size that is used: a {whole} file cannot "
            "be decoded at reduced size, as JPEG can. Or keep the small pictures when they are "
            "first made."
        )
    return (
        f"Decode at reduced size: {_how(facts)}. Or shrink the files once to a little above the "
        "size that is used."
    )


def _toggles(facts: Facts, whole: str) -> tuple[str, ...]:
    fitting = (name for name in _words.IMAGE_TOGGLES if not (whole and name == "draft_decode"))
    return (*fitting, *(("workers",) if _words.more_workers(facts) else ()))


def _how(facts: Facts) -> str:
    """What asks the decoder that was seen for fewer pixels."""
    if any("cv2" in name for name in facts.work.functions("image_decode")):
        return (
            "cv2.IMREAD_REDUCED_COLOR_2, _4 or _8 as the flag of cv2.imread makes JPEG decode 1/2, "
            "1/4 or 1/8 of the width"
        )
    return (
        "image.draft('RGB', size) before the first access makes JPEG decode 1/2, 1/4 or 1/8 of the "
        "width (PIL's thumbnail does it itself)"
    )


def _decoded_pixels(facts: Facts) -> float:
    """Mean pixels of the pictures that fetches opened; 0 where no header was read, or where they
    are asked for at reduced size."""
    images = () if facts.work.reduces else facts.profile.images
    return fmean(row.width * row.height for row in images) if images else 0.0


def _used_pixels(facts: Facts) -> float:
    """Pixels that a sample of the batch can hold at most: three bytes each. 0 where it holds no
    picture."""
    sample_bytes = facts.storage.used_bytes_per_sample
    return sample_bytes / 3 if sample_bytes >= _LEAST_PICTURE_BYTES else 0.0


def _size_line(decoded: float, used: float) -> str:
    return (
        f"The pictures have {significant(decoded / 1e6, 3)} million pixels; a sample of the batch "
        f"holds at most {significant(used / 1e6, 3)} million: at least "
        f"{significant(decoded / used, 2)} times as many are decoded as used."
    )


RULE = Rule("oversized_decode", judge)
