"""A process has nearly as many files open as it may have."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.units import percent

# What the system, Python and torch say when there is no further descriptor (EMFILE, and a message
# with descriptors of which none arrived).
_SAID = ("too many open files", "errno 24", "items of ancdata")
_HANDED = (
    "Do not keep batches in a list: "
    'torch.multiprocessing.set_sharing_strategy("file_system") or fewer tensors a batch need '
    "fewer descriptors."
)
# Batches under way come and go with their descriptors: at four fifths one more loader ends the run.
NEAR = 0.8


def judge(facts: Facts) -> Finding | None:
    """The run is the harm. It has died of it, or it is near."""
    profile = facts.profile
    died = _died_of_it(profile)
    use = _nearest(profile)
    # Without workers batches hold no descriptors. A run that died may have had them.
    several = any(row.num_workers > 0 for row in profile.loaders) or not profile.loaders
    handed = several and (use is None or use.worker < 0)
    near = use is not None and use.peak_open_files >= NEAR * use.open_files_limit
    if not died and not near:
        return None
    return finding(
        facts,
        Gain(0.0, 0.0, 0.0),
        cause="open_files_limit",
        resource="memory",
        title="No further file could be opened: the limit of open files is reached"
        if died
        else "Nearly as many files are open as may be",
        evidence=(
            f"The cell ended with {profile.ended_by}: {profile.ended_text[-160:]}" if died else "",
            _use_line(use),
            "Each tensor that a worker hands over holds one, until the loop lets go of its batch."
            if handed
            else "",
        ),
        advice="Raise the limit before the loader is made (resource.setrlimit(resource."
        "RLIMIT_NOFILE, (hard, hard)) with hard from getrlimit, or ulimit -n 65536), and close "
        "what is not needed any more" + (f". {_HANDED}" if handed else "."),
        harm="run",
    )


def _died_of_it(profile: Profile) -> bool:
    text = profile.ended_text.lower()
    return bool(profile.ended_by) and any(part in text for part in _SAID)


def _nearest(profile: Profile) -> ProcessUse | None:
    """The process that came nearest to its limit; None where it is not known."""
    rows = [row for row in profile.processes if row.open_files_limit > 0]
    return max(rows, key=lambda row: row.peak_open_files / row.open_files_limit, default=None)


def _use_line(use: ProcessUse | None) -> str:
    if use is None:
        return ""
    who = "This process" if use.worker < 0 else f"Worker {use.worker}"
    part = use.peak_open_files / use.open_files_limit
    return (
        f"{who} had up to {use.peak_open_files:,} files open, {percent(part)} of the "
        f"{use.open_files_limit:,} it may have."
    )


RULE = Rule("open_files", judge, without_batches=True)
