"""Turns a profile into a diagnosis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from jupyter_ioscope import registry
from jupyter_ioscope.diagnosis import rules as rules_package
from jupyter_ioscope.diagnosis.ceilings import ceilings_of
from jupyter_ioscope.diagnosis.demand import demand_of
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.headline import detail, headline
from jupyter_ioscope.diagnosis.outliers import outliers_of
from jupyter_ioscope.diagnosis.ranking import BEFORE, margin, ranked, separated, would_separate
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.states_from_inside import with_states_from_inside
from jupyter_ioscope.diagnosis.throughput import throughput_of
from jupyter_ioscope.diagnosis.tiers import tier_of
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import (
    Ceiling,
    Diagnosis,
    Finding,
    Outliers,
    Unknown,
    Waits,
)
from jupyter_ioscope.model.profile import Profile

log = logging.getLogger("ioscope")

_T = TypeVar("_T")


def diagnose(profile: Profile) -> Diagnosis:
    """All judgements about one profile. Pure and deterministic; never raises.

    Whatever could not be judged is in `unknown`, with the reason.
    """
    return judged(profile, registry.plugins(rules_package, "RULE", "ioscope.rules"))


def judged(profile: Profile, rules: Sequence[Rule]) -> Diagnosis:
    """`diagnose` with the rules given: one broken rule never hides the others."""
    profile = with_states_from_inside(profile)
    facts = Facts(profile)
    unknown: list[Unknown] = []
    waits = _try("waits", lambda: facts.waits, Waits(None, (), 0.0, 0.0), unknown)
    asked = [rule for rule in rules if profile.batches or rule.without_batches]
    found = _apply(facts, asked, unknown)
    nothing: tuple[Finding, ...] = ()
    findings = _try("ranking", lambda: _ranked(facts, found), nothing, unknown)
    apart = separated(findings)
    settle = would_separate(findings, profile.wall_s)
    no_ceilings: tuple[Ceiling, ...] = ()
    return Diagnosis(
        headline=_try("headline", lambda: headline(facts, findings), "", unknown),
        detail=_try("detail", lambda: detail(facts, findings, apart), "", unknown),
        findings=findings,
        separated=apart,
        would_separate=settle,
        margin=margin(findings),
        waits=waits,
        throughput=_try("throughput", lambda: throughput_of(facts), None, unknown)
        if profile.batches
        else None,
        ceilings=_try("ceilings", lambda: ceilings_of(facts), no_ceilings, unknown),
        outliers=_try("outliers", lambda: outliers_of(profile), Outliers(), unknown),
        demand=_try("demand for cores", lambda: demand_of(facts), None, unknown),
        tier=tier_of(profile),
        unknown=tuple(unknown),
        not_measured=profile.not_measured,
    )


def _apply(facts: Facts, rules: Sequence[Rule], unknown: list[Unknown]) -> list[Finding]:
    found = []
    for rule in rules:
        judge = rule.judge
        finding = _try(rule.name, lambda judge=judge: judge(facts), None, unknown)  # type: ignore[misc]
        if finding is not None:
            found.append(finding)
    return found


def _ranked(facts: Facts, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings above the noise; with none, a loop that hardly waited is bound by its step. Of a
    loop that was over at once, or never got a batch, only its start can be judged, and what did
    harm."""
    findings = ranked(found, facts.own_cpu)
    if findings and facts.too_short:
        return tuple(row for row in findings if row.resource in BEFORE or row.harm)
    if findings:
        return findings
    consumer = [row for row in found if row.cause == "not_loader_bound"]
    if consumer and facts.waits.wait_fraction < 0.5:
        return (replace(consumer[0], toggles=()),)
    return ()


def _try(name: str, make: Callable[[], _T], otherwise: _T, unknown: list[Unknown]) -> _T:
    try:
        return make()
    except NotMeasuredError as error:
        unknown.append(Unknown(name, str(error)))
    except Exception as error:
        log.warning("%s failed", name, exc_info=True)
        unknown.append(Unknown(name, f"it failed: {type(error).__name__}: {error}"))
    return otherwise
