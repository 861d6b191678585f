"""A file that holds many items is opened again for every item."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    WAIT_CAUSES,
    first_fetches,
    gain_of_work,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.diagnosis.storage_facts import Reopened
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, percent, significant

# Fewer opens a sample than this are no opening for every item.
_OFTEN = 0.25

# What a file newly opened knows nothing of has to be looked up again.
_CONTAINERS = ("container_open", "container_lookup")
_OPENS = ("file_open", "file_stat")
_AGAIN = (*_CONTAINERS, *_OPENS)
_QUERY = "container_query"
_NEARLY_EACH = 0.9


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if every worker opened the file once."""
    if not facts.batches:
        return None
    again = _reopened(facts)
    kinds = _AGAIN if again or _opened_unseen(facts) else _CONTAINERS
    opening = facts.work.fraction("container_open", *(kind for kind in kinds if kind in _OPENS))
    if not opening[0] or _only_at_first(facts, opening) or (not again and _each_its_own(facts)):
        return None
    return finding(
        facts,
        _gain(facts, kinds, again),
        cause="reopen_per_item",
        resource=resource(facts),
        title="A file is opened again for every item",
        evidence=(
            seen_line(facts, "opening and closing files", *kinds),
            _again_line(again),
            _query_line(facts, again),
            place_line(facts, *kinds),
        ),
        advice="Open it once in each worker, at the first access (if self.file is None: self.file "
        "= ...), and keep the handle. Not in __init__: a handle must not be shared by workers.",
        toggles=("keep_open", "npz_unpacked"),
        where=facts.work.where(*kinds),
        refines=(*CPU_CAUSES, *WAIT_CAUSES, "many_small_files"),
    )


def _gain(facts: Facts, kinds: tuple[str, ...], again: Reopened | None) -> Gain:
    """What opening takes. A database reads its schema with the first query after it was opened:
    how much of the queries that is cannot be told, so it is half of them, give or take a half."""
    opening = gain_of_work(facts, *kinds)
    if not _queries_anew(facts, again):
        return opening
    both = gain_of_work(facts, *kinds, _QUERY)
    return Gain((opening.share + both.share) / 2, opening.low, both.high)


def _queries_anew(facts: Facts, again: Reopened | None) -> bool:
    """Whether queries come after a fresh opening of the file for nearly every sample."""
    often = again is not None and again.per_sample >= _NEARLY_EACH
    return often and facts.work.fraction(_QUERY)[0] > 0


def _query_line(facts: Facts, again: Reopened | None) -> str:
    if not _queries_anew(facts, again):
        return ""
    return (
        f"Another {percent(facts.work.fraction(_QUERY)[0])} are in queries, the first of which "
        "reads the schema again each time."
    )


def _reopened(facts: Facts) -> Reopened | None:
    """The file that Python opened most often, if about once for every item or so."""
    try:
        files = facts.storage.reopened
    except NotMeasuredError:
        return None
    return files[0] if files and files[0].per_sample >= _OFTEN else None


def _opened_unseen(facts: Facts) -> bool:
    """Whether C libraries open the files: Python opened none, and still files are closed."""
    try:
        opened = facts.storage.opens_per_sample
    except NotMeasuredError:
        return False
    return not opened and facts.work.fraction("container_open")[0] > 0


def _each_its_own(facts: Facts) -> bool:
    """Whether Python opened a file of its own for most samples: those are small files."""
    try:
        storage = facts.storage
        return storage.opens_per_sample >= _OFTEN and storage.opens_per_file < 2 * _epochs(facts)
    except NotMeasuredError:
        return False


def _epochs(facts: Facts) -> int:
    return max(1, len({row.epoch for row in facts.batches}))


def _only_at_first(facts: Facts, opening: tuple[float, float]) -> bool:
    """Whether what first fetches of a process took longer may explain all opening that was seen."""
    fraction, error = opening
    return fraction - error <= first_fetches(facts)


def _again_line(again: Reopened | None) -> str:
    if again is None:
        return ""
    size = f" ({bytes_text(again.size_bytes)})" if again.size_bytes >= 0 else ""
    return (
        f"{again.path}{size} was opened {again.opens:,} times in fetches, "
        f"{significant(again.per_sample, 2)} times a sample."
    )


RULE = Rule("reopen_per_item", judge)
