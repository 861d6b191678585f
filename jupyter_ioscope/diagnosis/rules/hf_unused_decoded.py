"""A column of pictures or sound is decoded for every row, and nobody uses it."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import GENERAL, Frames, HfFacts, hf_facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, plus_minus, seconds

_FEATURES = "/datasets/features/"
_DECODERS = ("image.py", "audio.py", "video.py")
# Libraries that work on decoded pictures and sound.
_PIXELS = ("/PIL/", "/torchvision/", "/cv2/", "/albumentations/", "/skimage/", "/torchaudio/",
           "/librosa/", "/kornia/")  # fmt: skip
# A pixel takes at least 5 ns to decode (JPEG, turbo) and is three bytes: a batch that holds less
# than a tenth of what must have been decoded, or less than 32 x 32 pixels, does not hold it.
_BYTES_PER_NS = 0.1 * 3 / 15
_LEAST_BYTES = 32 * 32 * 3
# Touching every pixel once (np.asarray of it) takes about a fifth of decoding a JPEG.
_UNTOUCHED = 0.05
_USUAL = 0.7


def judge(facts: Facts) -> Finding | None:
    """Decoding whose result reached neither the batch nor any other work on it.

    Silent where it may have been used: then decoding simply costs that.
    """
    known = hf_facts(facts)
    columns = facts.loader.fact("decoded")
    if known is None or not columns or not facts.batches:
        return None
    part = known.seen(_decodes, _USUAL)
    if not any(_decodes(frames) for frames, _ in known.fetch_stacks):
        return None
    why = _unused(known, part.fraction * known.cpu_per_sample_ns)
    if not why or _worked_on(known):
        return None
    many = "columns" if "," in columns else "column"
    return finding(
        facts,
        known.gain(part),
        cause="hf_unused_decoded_column",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title=f"The {many} “{columns}” is decoded for every row, and seems not to be used",
        evidence=(
            f"{plus_minus(100 * part.fraction, 100 * part.error, 1)} % of the fetching decodes "
            f"“{columns}”.",
            why,
            "No other work on pictures or sound was seen in the fetches.",
            _words.per_sample_line(facts, "cpu"),
        ),
        advice=f"If you do not use “{columns}”, leave it out before the loop: "
        "ds = ds.select_columns([...]) or ds.remove_columns([...]). If you need it later only, "
        "read its bytes: ds.cast_column(..., Image(decode=False)).",
        where=facts.where(),
        toggles=("hf_select_columns", "hf_decode_off"),
        refines=(*GENERAL, "oversized_decode", "repeated_deterministic_transform"),
    )


def _decodes(frames: Frames) -> bool:
    return any(
        _FEATURES in frame.file.replace("\\", "/") and frame.file.endswith(_DECODERS)
        for frame in frames
    )


def _worked_on(known: HfFacts) -> bool:
    """Whether decoded data was seen in other hands than the decoder's."""
    return any(
        any(part in frame.file.replace("\\", "/") for part in _PIXELS for frame in frames)
        and not _decodes(frames)
        for frames, _ in known.fetch_stacks
    )


def _unused(known: HfFacts, decode_ns: float) -> str:
    """What shows that the decoded column was not used; "" where it may have been."""
    facts = known.facts
    rows = [row for row in facts.fetches if row.samples > 0]
    samples = sum(row.samples for row in rows)
    if not samples:
        return ""
    each = sum(row.batch_bytes for row in rows) / samples
    if each < max(_LEAST_BYTES, decode_ns * _BYTES_PER_NS):
        return (
            f"A sample of the batch is {bytes_text(each)}: too little to hold what "
            f"{seconds(decode_ns / 1e9)} of decoding made."
        )
    if facts.loader.library != "datasets":
        return ""
    steps_ns = sum(row.step_cpu_ns for row in facts.batches) / samples
    if steps_ns < _UNTOUCHED * decode_ns:
        return (
            f"The loop spends {seconds(steps_ns / 1e9)} on a row that took "
            f"{seconds(decode_ns / 1e9)} to decode: too little to look at it."
        )
    return ""


RULE = Rule("hf_unused_decoded", judge)
