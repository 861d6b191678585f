"""What each way of decoding pictures would bring: its time for the user's own pictures in the
place of the decoder's that was seen in the fetches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import pstdev

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.what_if import Z90
from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.trials.decode_times import KEPT, PIL, SCALES, DecodeTimes, decode_times
from jupyter_ioscope.units import percent

# Toggle -> whose decoding it brings.
DECODERS = {
    "draft_decode": PIL,
    "opencv_decode": "cv2",
    "fast_decode": "simplejpeg",
    "decode_once": KEPT,
}
_DECODE, _RESIZE, _OPEN = "image_decode", "image_resize", "image_open"
# Bytes of a pixel in a batch: three channels of a byte, or of a 32-bit float.
_BYTES_A_PIXEL = (3, 12)
# Below this part of the samples of fetching nothing about decoding decides.
_LEAST_PART = 0.05
# A sample of fewer bytes holds no picture.
_LEAST_SAMPLE_BYTES = 3 * 32 * 32
# One standard error of what is left of decoding, in parts of it: a trial decodes between other
# work, with colder caches than a loop over eight pictures.
_LEFT_ERROR = 0.15
_MOST_LEFT = 1.25  # a decoder that is slower still is told as that
_MOST_BOUND = 0.97
# Standard error of ln(predicted / measured) that the model of the loop and a trial add. Of 11
# comparisons on photographs (brought to 96, 224 and 300 pixels, with 0 to 2 workers, on a crowded
# machine) 10 lay inside the intervals that both make.
_MODEL_ERROR = 0.07


def decoding_prediction(facts: Facts, toggle: str) -> Prediction | None:
    """Of a toggle that changes how JPEGs are decoded; None for others, and where nothing is known:
    no picture could be timed, or the decoder is not installed.

    Raises:
        NotMeasuredError: stacks, fetches or the bytes of a batch were not measured.
    """
    decoder = DECODERS.get(toggle)
    if decoder is None or facts.work.fraction(_DECODE)[0] < _LEAST_PART or not _by_pil(facts):
        return None
    used = facts.storage.used_bytes_per_sample
    paths = tuple(row.path for row in facts.profile.images)
    if used < _LEAST_SAMPLE_BYTES or not paths:
        return None
    side = max(1, round(math.sqrt(used / _BYTES_A_PIXEL[-1])))
    times = decode_times(paths, side)
    if times is None or decoder not in times.decode:
        return None
    cases = [_parts(facts, times, decoder, used / size) for size in _BYTES_A_PIXEL]
    return _prediction(facts, times, toggle, cases)


def _by_pil(facts: Facts) -> bool:
    stacks = facts.profile.stacks
    return stacks is not None and any("/PIL/" in frame.file for frame in stacks.frames)


def _parts(
    facts: Facts, times: DecodeTimes, decoder: str, used_pixels: float
) -> tuple[float, float, float]:
    """(part of the fetches that goes, one standard error, what is left of decoding) where so many
    pixels of each picture are used."""
    decode, decode_error = facts.work.fraction(_DECODE)
    resize, resize_error = facts.work.fraction(_RESIZE)
    # What was kept is a file, too: opening it is quicker than finding out what a JPEG holds.
    opened = facts.work.fraction(_OPEN)[0] / 2 if decoder == KEPT else 0.0
    scales = [_scale(size, used_pixels) if facts.work.resizes else 1 for size in times.sizes]
    before = times.decode[PIL][1]
    after = [times.decode[decoder][scale][number] for number, scale in enumerate(scales)]
    left = min(_MOST_LEFT, sum(after) / sum(before)) if sum(before) else 1.0
    whole = sum(times.resize[1])
    resized = sum(times.resize[scale][number] for number, scale in enumerate(scales))
    left_resize = 0.0 if decoder == KEPT else min(1.0, resized / whole) if whole else 1.0
    part = decode * (1 - left) + resize * (1 - left_resize) + opened
    spread = _spread(before, after)
    error = math.hypot(
        decode_error * (1 - left),
        resize_error * (1 - left_resize),
        decode * left * math.hypot(_LEFT_ERROR, spread),
    )
    return part, error, left


def _scale(size: tuple[int, int], used_pixels: float) -> int:
    """The strongest of 1, 1/2, 1/4 and 1/8 that leaves at least the pixels used."""
    pixels = size[0] * size[1]
    return max((scale for scale in SCALES if pixels / scale**2 >= used_pixels), default=1)


def _spread(before: Sequence[float], after: Sequence[float]) -> float:
    """Standard error of the ratio of sums, in parts of it, from how the pictures differ."""
    ratios = [new / old for new, old in zip(after, before, strict=True) if old > 0]
    mean = sum(ratios) / len(ratios) if ratios else 0.0
    return pstdev(ratios) / mean / math.sqrt(len(ratios)) if mean > 0 else 0.0


def _prediction(
    facts: Facts, times: DecodeTimes, toggle: str, cases: Sequence[tuple[float, float, float]]
) -> Prediction:
    ends = [end for part, error, _ in cases for end in _ratios(facts, part, error)]
    middle = math.sqrt(math.prod(_ratio(facts, part) for part, _, _ in cases))
    least, most = percent(min(left for *_, left in cases)), percent(max(left for *_, left in cases))
    left = most if least == most else f"{least} to {most}"
    number = len(times.sizes)
    pictures = f"{number} of your pictures" if number > 1 else "one of your pictures"
    how = (
        f"Timed on {pictures}: {left} of the time that decoding takes now is left, "
        f"and decoding is {percent(facts.work.fraction(_DECODE)[0])} of the samples of fetching."
    )
    spread = math.exp(Z90 * _MODEL_ERROR)
    return Prediction(middle, min(ends) / spread, max(ends) * spread, how)


def _ratios(facts: Facts, part: float, error: float) -> Iterator[float]:
    yield _ratio(facts, part - Z90 * error)
    yield _ratio(facts, part + Z90 * error)


def _ratio(facts: Facts, part: float) -> float:
    """Throughput without that part of the fetches over that with it."""
    if part < 0:
        return 1 / (1 + _freed(facts, -part))
    return 1 / (1 - _freed(facts, part))


def _freed(facts: Facts, part: float) -> float:
    """Part of the loop that is free without that part of the fetches. Stack samples are parts of
    wall time, time in line for a core included: all of a fetch becomes that much shorter."""
    part = min(1.0, part)
    effect = facts.replay.effect(Without(part, off_cpu=part))
    return min(_MOST_BOUND, effect.freed * facts.reach)
