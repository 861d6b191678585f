"""From the runs of a bench to its result: verdicts, what is wrong with whom, and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from jupyter_ioscope.benches._bench import Arm, Bench, Missing, Prepared
from jupyter_ioscope.benches._rounds import Rounds
from jupyter_ioscope.model.bench import BenchArm, BenchResult
from jupyter_ioscope.trials import statistics
from jupyter_ioscope.units import ratio as ratio_text
from jupyter_ioscope.units import seconds

_GROUPS_TOLD = 3
_OVER_S = 2.0  # beyond the budget: worth a sentence


def result(bench: Bench, prepared: Prepared, rounds: Rounds, took_s: float) -> BenchResult:
    """The finished value; where it ran is for the caller to say."""
    rows = [_arm(arm, rounds) for arm in prepared.arms]
    rows += [_missing(row) for row in prepared.missing]
    found = rounds.found()
    best = _best(rows)
    winner = next((a for a in prepared.arms if best and a.key == (best.group, best.name)), None)
    return BenchResult(
        name=bench.name,
        title=bench.title,
        target=prepared.target,
        item=bench.item,
        headline=headline(rows),
        arms=tuple(rows),
        tables=tuple(prepared.tables(found)),
        notes=(*prepared.sentences(found), *_budget(rounds)),
        code=prepared.code(winner) if winner is not None else "",
        confidence=1 - statistics.ALPHA,
        isolation="",
        isolation_text="",
        seconds=took_s,
    )


def _budget(rounds: Rounds) -> Iterator[str]:
    if rounds.over_s() > _OVER_S:
        yield (
            f"This took {seconds(rounds.over_s())} longer than the budget: four rounds are the "
            "least that shows anything."
        )


def _arm(arm: Arm, rounds: Rounds) -> BenchArm:
    other, found = rounds.against(arm), rounds.ratio(arm)
    why, left_out = rounds.failed.get(arm.key, ""), rounds.left_out.get(arm.key, "")
    runs = len(rounds.runs[arm.key])
    per_item = rounds.middle(arm, "seconds")
    verdict = statistics.verdict(found) if other is not None else "reference"
    return BenchArm(
        name=arm.name,
        group=arm.group,
        against=other.name if other is not None else "",
        verdict="failed" if why else "not tried" if left_out else verdict,
        ratio=found.ratio,
        ratio_low=found.low,
        ratio_high=found.high,
        seconds_per_item=per_item,
        bytes_per_s=arm.bytes / (per_item * arm.items) if arm.bytes and per_item > 0 else 0.0,
        cpu_s_per_item=rounds.middle(arm, "cpu"),
        memory_bytes=int(rounds.middle(arm, "memory")) if runs else 0,
        files_bytes=int(rounds.middle(arm, "files")) if runs else 0,
        size_bytes=arm.size_bytes,
        trials=runs,
        correct=_correct(arm, rounds),
        differences=(why or left_out,) if why or left_out else rounds.differences.get(arm.key, ()),
        note=arm.note,
    )


def _correct(arm: Arm, rounds: Rounds) -> str:
    if arm.key in rounds.failed:
        return "fails"
    if arm.key in rounds.left_out:
        return "not checked"
    if arm.look is None:
        return "reference"
    if arm.key not in rounds.differences:
        return "not checked"
    return "differs" if rounds.differences[arm.key] else "same"


def _missing(row: Missing) -> BenchArm:
    nothing = math.nan
    kind = "not installed" if "not installed" in row.reason else "failed"
    return BenchArm(row.name, row.group, "", kind, nothing, 0.0, math.inf, nothing, 0.0, nothing,
                    0, 0, 0, 0, "not checked", (row.reason,), "")  # fmt: skip


def headline(rows: Iterable[BenchArm]) -> str:
    """One sentence a group: the fastest that gives the same, and a faster one that does not."""
    groups: dict[str, list[BenchArm]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    told = [(f"{group}: " if group else "") + _told(arms) for group, arms in groups.items()]
    more = len(told) - _GROUPS_TOLD
    return "; ".join(told[:_GROUPS_TOLD]) + (f"; and {more} more below" if more > 0 else "")


def _told(rows: list[BenchArm]) -> str:
    ran = [row for row in rows if row.trials and row.correct != "fails"]
    if not ran:
        return "nothing could be timed"
    reference = next((row for row in ran if not row.against), ran[0])
    best = _best(ran)
    text = f"nothing that gives the same is clearly faster than {reference.name}"
    if best is not None:
        text = f"{best.name} is {ratio_text(best.ratio)} as fast as {best.against}"
        text += ", with the same outcome" if best.correct == "same" else ""
    wrong = [row for row in _faster(ran) if row.correct == "differs"]
    wrong = [row for row in wrong if best is None or row.ratio > best.ratio]
    if wrong:
        first = max(wrong, key=lambda row: row.ratio)
        text += f"; {first.name} ({ratio_text(first.ratio)}) gives something else"
    return text


def _best(rows: Iterable[BenchArm]) -> BenchArm | None:
    good = [row for row in _faster(rows) if row.correct in ("same", "reference")]
    return max(good, key=lambda row: row.ratio, default=None)


def _faster(rows: Iterable[BenchArm]) -> list[BenchArm]:
    return [row for row in rows if row.verdict == "faster"]
