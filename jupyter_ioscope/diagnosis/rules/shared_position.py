"""Workers read a file through the position of one open file that they inherited."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.work import told_by_code
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import HeldFile
from jupyter_ioscope.units import bytes_text

# Readers move the position; one that stays where it was belongs to a memory map or to pread, which
# carries its own place.
_MOVED = 3
# The index of a sample crosses a pipe with about ten bytes; more than this is read from files.
_LEAST_BYTES = 32.0
# Who opens a file for every other item or more reads those; the shared one may be the loop's.
_OPENS_A_SAMPLE = 0.5
# Who stands in line for a lock may well read under it.
_LOCKED = 0.01


def judge(facts: Facts) -> Finding | None:
    """The data is the harm: between the seek and the read of one worker another one moves the
    position. It costs no time, and seldom an error."""
    if facts.alone or facts.workers < 2:
        return None
    fetching = {row.pid for row in facts.fetches}
    rows = [row for row in facts.profile.held_files if _shared(row, fetching)]
    if not rows or not _reads(facts) or _guarded(facts) or _one_each(facts, rows):
        return None
    row = max(rows, key=lambda held: held.positions)
    readers = len({fetch.worker for fetch in facts.fetches if fetch.pid in row.sharing})
    with_parent = facts.profile.pid in row.sharing
    return finding(
        facts,
        Gain(0.0, 0.0, 0.0),
        cause="fd_shared_after_fork",
        resource="none",
        title="Workers read through one shared file position: samples may be mixed up",
        evidence=(
            f"{readers} workers{' and this process' if with_parent else ''} have one and the same "
            f"open file of {row.path} ({bytes_text(row.size_bytes)}): it was open when the workers "
            "were forked.",
            f"Its position was seen at {row.positions} different places: what one worker seeks, "
            "another one moves before it reads.",
        ),
        advice="Open the file in the worker: in __getitem__ when it is first needed (keep it in an "
        "attribute that is None until then), or in worker_init_fn. Or read with os.pread(file, "
        "size, offset) or through a memory map, which need no shared position.",
        harm="data",
    )


def _shared(row: HeldFile, fetching: set[int]) -> bool:
    return len(fetching & {*row.sharing}) >= 2 and row.positions >= _MOVED


def _reads(facts: Facts) -> bool:
    """Whether workers read from files that they did not open for the item; where that is not known,
    they may."""
    storage = facts.storage
    try:
        if storage.opens_per_sample >= _OPENS_A_SAMPLE:
            return False
        return storage.read_bytes_per_sample >= _LEAST_BYTES
    except NotMeasuredError:
        return True


def _guarded(facts: Facts) -> bool:
    """Whether a lock between processes is about. One that is free most of the time is hardly ever
    seen waited for, so the code counts as well, where it is known."""
    return facts.busy_fraction("lock") >= _LOCKED or told_by_code(facts.profile.calls).guarded


def _one_each(facts: Facts, rows: list[HeldFile]) -> bool:
    """Whether each worker may well read files of its own: a stream that opened its shards before
    the fork, and moves in as many of them as there are workers."""
    return facts.loader.dataset_kind == "iterable" and len(rows) >= facts.workers


RULE = Rule("shared_position", judge)
