"""Batches cross through shared memory, and there is too little of it."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.queued import Queued, queued
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import bytes_text, percent

# What torch, Python and the system say when writing to it fails. A page that cannot be had is a
# bus error; a file that cannot grow is "No space left on device".
_SAID = ("bus error", "shared memory", "shm", "/torch_")
_NO_ROOM = "no space left"
# With 80 % of it taken by batches that wait, the next larger batch ends the run.
NEAR = 0.8


def judge(facts: Facts) -> Finding | None:
    """The run is the harm. It has died of it, or it is near: most of /dev/shm may be taken."""
    profile = facts.profile
    died = _died_of_it(profile)
    found = _queued(facts)
    size = profile.machine.shm_bytes
    near = bool(found and size and found.most_bytes >= NEAR * size)
    if not died and not near:
        return None
    return finding(
        facts,
        Gain(0.0, 0.0, 0.0),
        cause="shm_limit",
        resource="memory",
        title="A worker died: shared memory (/dev/shm) is full"
        if died
        else "Shared memory (/dev/shm) is nearly too small for the waiting batches",
        evidence=(
            f"The cell ended with {profile.ended_by}: {profile.ended_text[-160:]}" if died else "",
            f"/dev/shm holds {bytes_text(size)}." if size else "",
            _need(found, size),
        ),
        advice="Give the container more shared memory (docker run --shm-size=8g, or --ipc=host; in "
        "Kubernetes an emptyDir with medium: Memory at /dev/shm). Until then: fewer workers, a "
        "smaller prefetch_factor, smaller batches or smaller types, or "
        'torch.multiprocessing.set_sharing_strategy("file_system").',
        toggles=("prefetch", "workers") if near else (),
        harm="run" if died else "memory",
    )


def _died_of_it(profile: Profile) -> bool:
    if not profile.ended_by:
        return False
    text = profile.ended_text.lower()
    small = 0 < profile.machine.shm_bytes < profile.machine.memory_bytes / 4
    return any(part in text for part in _SAID) or (_NO_ROOM in text and small)


def _queued(facts: Facts) -> Queued | None:
    try:
        loader = facts.loader
    except NotMeasuredError:
        return None
    if not loader.num_workers:
        return None
    return queued(loader, facts.batches, facts.made)


def _need(found: Queued | None, size: int) -> str:
    if found is None or not found.batch_bytes:
        return ""
    part = f", {percent(found.most_bytes / size)} of it" if size else ""
    return (
        f"Up to {found.most} batches of {bytes_text(found.batch_bytes)} may wait there at a time: "
        f"{bytes_text(found.most_bytes)}{part}."
    )


RULE = Rule("shm_limit", judge, without_batches=True)
