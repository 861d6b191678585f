"""How much could be seen of a run, in words."""

from __future__ import annotations

from jupyter_ioscope.model.diagnosis import Tier
from jupyter_ioscope.model.profile import Profile

_FULL = Tier("full", "full", "Batch records, states and stacks of all threads")
_NO_STACKS = Tier("full", "full", "Batch records and states of all threads, without stacks")
_NO_LOADER = Tier(
    "full",
    "no loader",
    "States of all threads were recorded, and no batch: no loader was recognised",
)
_NO_PTRACE = Tier(
    "no_ptrace",
    "no right to attach",
    "Without ptrace rights system calls cannot be seen and stacks come from inside the processes: "
    "disk, locks and the GIL are told apart less surely",
)
_IN_PROCESS = Tier(
    "in_process",
    "records only",
    "No sampler ran beside the processes: times and CPU of batches and fetches are exact, what "
    "blocked threads waited for is not known",
)


def tier_of(profile: Profile) -> Tier:
    """The tier that a profile's evidence belongs to."""
    if profile.tier == "full" and not (profile.batches or profile.loaders or profile.epochs):
        return _NO_LOADER
    if profile.tier == "full":
        return _FULL if profile.stacks is not None else _NO_STACKS
    for tier in (_NO_PTRACE, _IN_PROCESS):
        if profile.tier == tier.name:
            return tier
    return Tier(profile.tier, profile.tier, "")
