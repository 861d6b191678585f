"""Samples are widened in the worker, and the wide form is what is copied and handed over."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import CPU_CAUSES, gain_of_part
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.diagnosis.work import Calls, Seen
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import DIVIDED
from jupyter_ioscope.units import bytes_text, plus_minus

# Calls that make numbers wider, with the part of the bytes that a smaller form would not have:
# eight bytes instead of one, four instead of one. What was narrower before is not known, so the
# advice asks; float() of Python numbers is another function.
_WIDENS = {
    ".double": 7 / 8,
    ".long": 7 / 8,
    "torch.float64": 7 / 8,
    "numpy.float64": 7 / 8,
    "numpy.int64": 7 / 8,
    "torch.nn.functional.one_hot": 7 / 8,  # of one class number, with eight classes and more
    ".float": 3 / 4,
    "torchvision.transforms.functional.to_tensor": 3 / 4,
    "torchvision.transforms.functional.convert_image_dtype": 3 / 4,
}
# Numbers divided by a constant: doubles come of whole numbers so, and numpy does not ask.
_IN_DOUBLES = {DIVIDED: 7 / 8}
_ONE_HOT = "torch.nn.functional.one_hot"
_WHOLE_NUMBERS = (".long", "numpy.int64")
_EIGHT_BYTES = {".double", "torch.float64", "numpy.float64", DIVIDED}
# Widening must be a good part of the fetching itself, and what is joined as large as here: small
# batches cost the same in any form.
LEAST_WIDENING = 0.1
LEAST_BATCH_BYTES = 4_000_000
# Batches of which more than this part are doubles are halved by float32, whatever made them.
_MOSTLY = 0.5


def judge(facts: Facts) -> Finding | None:
    """Widening, and the part of joining that the narrow form would not have, in bytes."""
    if not facts.batches:
        return None
    size = median([row.batch_bytes for row in facts.fetches])
    if size < LEAST_BATCH_BYTES:
        return None
    doubles = _in_doubles(facts)
    known = {**_WIDENS, **_IN_DOUBLES} if doubles else _WIDENS
    calls = facts.work.calls or {}
    widening, error = facts.work.part(lambda row: bool(_widens(calls, row, known)))
    joining, joining_error = facts.work.fraction("collate")
    if widening < LEAST_WIDENING:
        return _doubles(facts, size, (joining, joining_error)) if doubles else None
    names = [name for row in facts.work.seen for name in _widens(calls, row, known)]
    saved = max(known[name] for name in names)
    part = widening + joining, together(error, joining_error)
    return _found(
        facts,
        gain_of_part(facts, part, None, saved),
        title="Samples are made wider before they are joined and handed over",
        evidence=(
            f"{plus_minus(100 * widening, 100 * error, 1)} % of the fetching is in lines that "
            f"{_told(names, known)}, and {plus_minus(100 * joining, 100 * joining_error, 1)} % "
            "joins the result.",
            f"A batch is {bytes_text(size)}; in the smaller form it would be about "
            f"{bytes_text(size * (1 - saved))}.",
        ),
        names=names,
    )


def _found(
    facts: Facts, gain: Gain, title: str, evidence: tuple[str, ...], names: list[str]
) -> Finding:
    return finding(
        facts,
        gain,
        cause="bytes_inflated",
        resource="main_cpu" if facts.alone else "worker_cpu",
        title=title,
        evidence=(*evidence, _words.where_line(facts)),
        advice=_advice(names, facts.alone),
        where=facts.where(),
        refines=(*CPU_CAUSES, "bytes_inflated", "slow_collate"),
    )


def _in_doubles(facts: Facts) -> bool:
    """Whether most bytes of most batches are numbers of 64-bit floating point."""
    parts = [row.double_bytes / row.batch_bytes for row in facts.fetches if row.batch_bytes > 0]
    return bool(parts) and median(parts) > _MOSTLY


def _doubles(facts: Facts, size: float, joining: tuple[float, float]) -> Finding:
    """Batches of doubles, whatever makes them: half of the joining goes with half of the bytes."""
    return _found(
        facts,
        gain_of_part(facts, joining, None, _MOSTLY),
        title="Batches are made of 64-bit floating point numbers",
        evidence=(
            f"A batch is {bytes_text(size)}, most of it float64; as float32 it would be "
            f"{bytes_text(size / 2)}.",
            f"{plus_minus(100 * joining[0], 100 * joining[1], 1)} % of the fetching joins it.",
        ),
        names=[".double"],
    )


def _told(names: list[str], known: Mapping[str, float]) -> str:
    """What widens most, where a line has several."""
    name = max(names, key=lambda name: (name == _ONE_HOT, known[name]))
    if name == DIVIDED:
        return "divide by a constant, which makes doubles of whole numbers"
    return f"call {name.rpartition('.')[2]}"


def _advice(names: list[str], alone: bool) -> str:
    """By the call that widens: what was narrower before depends on it."""
    where = "in the step" if alone else "after the hand-over, in the step"
    if any(name.startswith("torchvision.") for name in names):
        return (
            "Keep pictures as bytes: transforms.PILToTensor() (v2.ToImage()) instead of ToTensor() "
            f"gives uint8. Convert {where} or on the device: batch.float() / 255 there."
        )
    if _ONE_HOT in names:
        return (
            "Return class numbers (uint8) instead of one plane for each class, and call one_hot "
            f"{where} or on the device; cross_entropy takes class numbers as they are."
        )
    if all(name in _WHOLE_NUMBERS for name in names):
        return (
            "Return whole numbers in as many bits as they need (uint8 class masks, token ids of "
            f"16 or 32 bits) and convert {where} or on the device: batch.long() there."
        )
    half = " float32 is enough where float64 is used." if set(names) & _EIGHT_BYTES else ""
    return (
        "Return the numbers as they were before (uint8 pixels and masks, 16-bit sound) and convert "
        f"{where} or on the device: batch.float() / 255 there.{half}"
    )


def _widens(calls: Calls, row: Seen, known: Mapping[str, float]) -> tuple[str, ...]:
    """What of the line that a sample was seen in widens."""
    if row.collate:
        return ()
    names = calls.get((row.place.file, row.place.line), ())
    return tuple(name for name in names if name in known)


RULE = Rule("bytes_inflated", judge)
