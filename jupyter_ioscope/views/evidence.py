"""What the report says beside its pictures: the tier, the cores, and the phases of the workers."""

from __future__ import annotations

from jupyter_ioscope.model.diagnosis import Demand, Diagnosis, Phase, Tier
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import percent, seconds, significant
from jupyter_ioscope.views.bars import share_text
from jupyter_ioscope.views.shapes import IPhase
from jupyter_ioscope.views.words import clean

PHASE_LABELS = {
    "start_up": "start-up",
    "index_wait": "waiting for a task",
    "fetch": "fetching items",
    "collate": "collating",
    "put": "putting the batch",
}


_NONE = "none"


def tier_text(tier: Tier) -> str:
    """The tier by name and what it means; empty where no tier is known."""
    if not tier.name:
        return ""
    return clean(f"Evidence: {tier.title}. {tier.text}.", 300)


def cores_text(demand: Demand | None, wall_s: float) -> str:
    """Own and others' use of the cores, standing in line, and the quota; what is not known is left
    out."""
    if demand is None:
        return ""
    cores = "1 core" if demand.cores == 1 else f"{demand.cores:g} cores"
    parts = []
    if demand.own is not None:
        parts.append(f"this loop used {_cores(demand.own)} of {cores}")
    if demand.others is not None:
        parts.append(f"other programs {_cores(demand.others)}")
    if demand.waiting is not None and _cores(demand.waiting) == _NONE:
        parts.append("none of its threads waited for a core")
    elif demand.waiting is not None:
        parts.append(f"on average {_cores(demand.waiting)} of its threads waited for a core")
    if demand.throttled_s:
        share = f" ({percent(demand.throttled_s / wall_s, 0)} of the run)" if wall_s > 0 else ""
        times = f", {demand.throttled_periods:,} times" if demand.throttled_periods else ""
        parts.append(f"the CPU quota held it back for {seconds(demand.throttled_s)}{share}{times}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _cores(value: float) -> str:
    return significant(round(value, 2), 2) if value >= 0.005 else _NONE


def phases(profile: Profile, diagnosis: Diagnosis) -> list[IPhase]:
    """The phases of all fetching threads, as time a batch and share of their time."""
    rows = diagnosis.waits.phases
    whole_ns = sum(row.time_ns for row in rows)
    fetched = max(1, len(profile.fetches))
    return [_phase(row, whole_ns, fetched) for row in rows] if whole_ns > 0 else []


def _phase(row: Phase, whole_ns: int, fetched: int) -> IPhase:
    on_core = percent(row.cpu_ns / row.time_ns, 0) if row.time_ns else "–"
    doubt = row.error_ns / row.time_ns if row.time_ns else 0.0
    return IPhase(
        name=clean(row.name, 30),
        label=PHASE_LABELS.get(row.name, clean(row.name, 30)),
        perBatch=seconds(row.time_ns / fetched / 1e9),
        share=percent(row.time_ns / whole_ns),
        cpu=share_text(row.cpu_ns / row.time_ns, doubt) if doubt >= 0.01 else on_core,
    )
