"""Judges saved profiles again, in seconds: what the diagnosis says now, beside what is known."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.errors import ProfileFileError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from tests.accuracy.baselines import Said, baselines
from tests.accuracy.entries import HEALTHY, Entry
from tests.accuracy.record import PROFILE, RESULT

# A milder run counts where its trouble still costs this part of the loop.
LEAST_COST = 0.2


@dataclass(frozen=True)
class Verdict:
    """What the diagnosis says of one profile. `causes` are its findings, the first one first."""

    entry: Entry
    tier: str
    causes: tuple[str, ...]
    resources: tuple[str, ...]
    shares: tuple[tuple[float, float, float], ...]
    separated: bool
    headline: str
    advice: str
    toggles: tuple[str, ...]
    evidence: tuple[str, ...]
    broken: tuple[str, ...]  # rules that failed
    baselines: tuple[tuple[str, Said], ...]
    recorded: str
    skipped: str = ""

    @property
    def first(self) -> str:
        """The label the diagnosis gives: a loader without a finding is called healthy."""
        return self.causes[0] if self.causes else HEALTHY

    def right(self, among: int = 1) -> bool:
        """Whether an accepted label is among the first findings."""
        named = self.causes[:among] or (HEALTHY,)
        if self.entry.healthy:
            return self.first == HEALTHY
        return any(cause in self.entry.causes for cause in named)

    @property
    def abstains(self) -> bool:
        """A loader with a trouble of which nothing is found, or no single cause stands out."""
        if self.entry.healthy:
            return False
        return not self.causes or not self.separated

    @property
    def advised(self) -> bool | None:
        """Whether the first advice names the change; None where nobody says what that is."""
        if not self.entry.advice or self.entry.healthy:
            return None
        text = " ".join((self.advice, *self.toggles)).lower()
        return any(word in text for word in self.entry.advice)


def judged(folder: Path, only: str = "", jobs: int = 2) -> list[Verdict]:
    """A verdict for every result below `folder`; `only` is part of a name, or a pattern."""
    chosen = [
        path
        for path in sorted(folder.glob(f"*/*{RESULT}"))
        if ".new." not in path.name and named(path.name.removesuffix(RESULT), only)
    ]
    if jobs < 2 or len(chosen) < 4:
        return [judge_one(path) for path in chosen]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(judge_one), chosen, chunksize=4))


def named(name: str, only: str) -> bool:
    """Whether `only` is part of the name, or a pattern of it."""
    name = name.replace("~", "/")
    return not only or only in name or fnmatch.fnmatch(name, only)


def judge_one(result_path: Path) -> Verdict:
    """The verdict on one saved profile."""
    result: dict[str, Any] = json.loads(result_path.read_text(encoding="utf-8"))
    entry = Entry.from_json(result["entry"])
    if result["skipped"]:
        return _skipped(entry, result_path.parent.name, result["skipped"])
    name = result_path.name.removesuffix(RESULT)
    try:
        profile = files.load(result_path.with_name(name + PROFILE))
    except ProfileFileError:  # kept by a version with another model
        return _skipped(entry, result_path.parent.name, "it was kept by another version of ioscope")
    cost = cost_of_trouble(entry, profile)
    if cost < LEAST_COST:
        reason = f"the machine was busier before: the trouble cost only {cost:.0%} of this loop"
        return _skipped(entry, result_path.parent.name, reason)
    return verdict(entry, result_path.parent.name, profile, diagnose(profile))


def cost_of_trouble(entry: Entry, profile: Profile) -> float:
    """Part of the run that its steps do not fill, where steps were added; 1 without them. Steps
    count as long as they were: a busy machine makes them longer than was asked for."""
    steps_s = sum(row.step_ns for row in profile.batches) / 1e9
    return max(0.0, 1 - steps_s / profile.wall_s) if entry.step and profile.wall_s else 1.0


def verdict(entry: Entry, tier: str, profile: Profile, diagnosis: Diagnosis) -> Verdict:
    found = diagnosis.findings
    return Verdict(
        entry=entry,
        tier=tier,
        causes=tuple(row.cause for row in found),
        resources=tuple(row.resource for row in found),
        shares=tuple((row.share, row.low, row.high) for row in found),
        separated=diagnosis.separated,
        headline=diagnosis.headline,
        advice=found[0].advice if found else "",
        toggles=found[0].toggles if found else (),
        evidence=tuple(line for row in found[:2] for line in row.evidence),
        broken=tuple(
            f"{row.rule}: {row.reason}" for row in diagnosis.unknown if "it failed" in row.reason
        ),
        baselines=tuple(baselines(profile)),
        recorded=profile.created_utc,
    )


def _skipped(entry: Entry, tier: str, reason: str) -> Verdict:
    return Verdict(entry, tier, (), (), (), True, "", "", (), (), (), (), "", reason)


def lines(
    verdicts: list[Verdict], verbose: bool = False, wrong_only: bool = False
) -> Iterator[str]:
    """One line a verdict: right or wrong, what was found, what is known."""
    for row in verdicts:
        if row.skipped:
            yield f"  skipped {row.tier} {row.entry.name}: {row.skipped}"
            continue
        mark = "1" if row.right() else "2" if row.right(2) else "-"
        if wrong_only and mark == "1":
            continue
        found = ", ".join(
            f"{cause} ({resource}) {share:.2f} [{low:.2f}-{high:.2f}]"
            for cause, resource, (share, low, high) in list(
                zip(row.causes, row.resources, row.shares, strict=True)
            )[: 8 if verbose else 3]
        )
        apart = "" if row.separated else " NOT SEPARATED"
        known = " or ".join(row.entry.causes)
        yield f"{mark} {row.tier} {row.entry.name} [{known}] {found or 'nothing'}{apart}"
        if verbose:
            yield f"    {row.headline} (recorded {row.recorded})"
            yield f"    advice: {row.advice} toggles: {', '.join(row.toggles) or 'none'}"
            yield from (f"    . {line}" for line in row.evidence)
        yield from (f"    BROKEN RULE {line}" for line in row.broken)
