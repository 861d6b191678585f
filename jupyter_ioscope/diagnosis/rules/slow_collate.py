"""Joining items into batches takes much longer than copying them would."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import CPU_CAUSES, resource
from jupyter_ioscope.diagnosis.work import Seen
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, plus_minus

# Memory is copied at some GB/s; joining arrays through Python lists comes to 10 to 50 MB/s, and
# growing a batch item by item to a few hundred. Below this rate, it is not the copying that takes
# the time.
_SLOW_BYTES_PER_S = 500e6
_COPIED_BYTES_PER_S = 3e9
_LEAST_PART = 0.2
# Torch's own joining is one stack for each tensor: nothing to gain, unless the tensors are tiny.
_TINY_BYTES = 4_096
# Work that only happens to be done while joining has rules of its own; one stack is no fault.
_OTHER_WORK = frozenset(
    (
        "text_parse",
        "regex",
        "tokenise",
        "tokenise_batch",
        "image_decode",
        "image_resize",
        "image_other",
        "audio_decode",
        "unpack",
        "table_rows",
        "dataset_rows",
        "remote",
        "file_open",
        "file_read",
        "sleep",
        "stack",
    )
)


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if joining cost no more than copying."""
    if not facts.batches:
        return None
    joining = _words.collate_fraction(facts)
    if joining < _LEAST_PART:
        return None
    rate = _rate(facts, joining)
    if rate >= _SLOW_BYTES_PER_S or _plain_stack(facts):
        return None
    own, error = _own_part(facts)
    if not own:
        return None
    gain = facts.gain_cpu(joining * own * (1 - rate / _COPIED_BYTES_PER_S))
    return finding(
        facts,
        gain,
        cause="slow_collate",
        resource=resource(facts),
        title="Joining the items into batches takes most of the fetching"
        if joining > 0.5
        else "Joining the items into batches takes much of the fetching",
        evidence=(
            f"{percent(joining)} of a fetch joins the items into a batch, at "
            f"{bytes_text(rate)} a second; copying memory comes to some GB.",
            f"{plus_minus(100 * own, 100 * error, 1)} % of that is the joining itself."
            if own < 0.95
            else "",
            _words.where_line(facts),
        ),
        advice=_words.JOINING[0].upper() + _words.JOINING[1:] + ".",
        toggles=("fast_collate", "workers") if _words.more_workers(facts) else ("fast_collate",),
        where=facts.where(),
        refines=CPU_CAUSES,
    )


def _rate(facts: Facts, joining: float) -> float:
    """Bytes joined a second of CPU: the joining part of a fetch, as far as fetches compute."""
    cpu_s = joining * sum(row.cpu_ns for row in facts.fetches) / 1e9
    return sum(row.batch_bytes for row in facts.fetches) / cpu_s if cpu_s else 0.0


def _plain_stack(facts: Facts) -> bool:
    """Whether torch itself joins, and tensors large enough that it is their bytes that count."""
    if facts.loader.fact("collate") != "torch":
        return False
    rows = [row for row in facts.fetches if row.samples > 0 and row.tensors > 0]
    pieces = sum(row.samples * row.tensors for row in rows)
    return bool(pieces) and sum(row.batch_bytes for row in rows) / pieces > _TINY_BYTES


def _own_part(facts: Facts) -> tuple[float, float]:
    """(part of the joining that no other rule is about, one standard error)."""

    def other(row: Seen) -> bool:
        return row.collate and row.kind in _OTHER_WORK

    try:
        whole, _ = facts.work.part(lambda row: row.collate)
        part, error = facts.work.part(other)
    except NotMeasuredError:
        return 1.0, 0.0
    if not whole or not part:
        return 1.0, 0.0
    return max(0.0, 1 - part / whole), min(0.5, error / whole)


RULE = Rule("slow_collate", judge)
