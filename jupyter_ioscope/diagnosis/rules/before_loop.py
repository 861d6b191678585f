"""Time between the start of the cell and the start of the loop."""

from __future__ import annotations

from dataclasses import replace

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.before import Spent, before_loop, waited_for
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.hf_facts import made_once_ns
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, seconds

# Opening a dataset takes some tenths of a second; more, and a good part of the cell, is work.
LEAST_SHARE = 0.3
LEAST_S = 0.3
# What is done once in the life of a kernel, or belongs to the model, is no trouble of the data.
_ONCE = (kinds.IMPORTING, kinds.MODELS)
_WAITS = {"disk": "waiting for files", "page_fault": "waiting for memory-mapped files",
          "network": "waiting for the network", "sleep": "sleeping"}  # fmt: skip
_ADVICE = {
    kinds.SCANNING: "Scan the files once and save the list (a text file or an array of paths), or "
    "keep many samples in one file: every file costs a request.",
    kinds.READING: "Read the index once and keep it in a format that loads at once: numpy or Arrow "
    "instead of JSON or CSV, memory-mapped if it is large.",
    kinds.LOADING: "Open the array without reading it all: np.load(path, mmap_mode='r') (a file "
    "that np.save wrote, not an .npz), or index the open HDF5 dataset. Rows are then read when "
    "they are used.",
    kinds.SAMPLING: "Draw the order of the samples once and keep it, or draw with replacement.",
    kinds.FETCHING_FILES: "Download once to a local disk, in a cell of its own.",
    kinds.DATASETS: "Let the result be cached (functions that can be hashed, the same arguments), "
    "or prepare it in a cell of its own and save it with save_to_disk.",
}


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if the loop began at once. `share` is a part of the time from the
    start of the cell to the end of the loop: the loop itself may be short."""
    if not facts.profile.epochs:
        return None
    before_ns, loop_ns = facts.before_ns, facts.loop.wall_ns
    spent = before_loop(facts.profile)
    once_ns = int(before_ns * spent.fraction(*_ONCE))
    made_ns = min(before_ns - once_ns, made_once_ns(facts.profile, facts.loop.start_ns))
    before_ns -= once_ns + made_ns
    share = before_ns / (before_ns + once_ns + made_ns + loop_ns)
    if share < LEAST_SHARE or before_ns < LEAST_S * 1e9:
        return None
    found = finding(
        facts,
        Gain.of(share, 0.0),
        cause="first_batch_setup",
        resource="start_up",
        title="The loop begins late",
        evidence=(
            f"{seconds(before_ns / 1e9)} of the cell passed before the loader was iterated; the "
            f"loop took {seconds(loop_ns / 1e9)}.",
            _what(facts, spent),
            f"Another {seconds(once_ns / 1e9)} went into importing libraries or loading a model."
            if once_ns > 0.1e9
            else "",
            f"Another {seconds(made_ns / 1e9)} transformed the dataset, for the first time."
            if made_ns > 0.1e9
            else "",
        ),
        advice=_ADVICE.get(
            spent.largest,
            "Prepare the data once and keep the result: save it, or put it into a cell of its "
            "own. What stands before the loop runs again with every run of this cell.",
        ),
        where=spent.places[0] if spent.places else "",
    )
    return replace(found, cost_s=before_ns / 1e9)


def _what(facts: Facts, spent: Spent) -> str:
    """What that time was spent in, as far as it was seen."""
    if not spent.samples:
        return ""
    place = f", mostly in {spent.places[0]}" if spent.places else ""
    kind = spent.largest
    if kind:
        return f"{percent(spent.fraction(kind))} of it was {kind}{place}."
    profile = facts.profile
    state = waited_for(profile, profile.start_ns, facts.loop.start_ns)
    doing = _WAITS.get(state, "")
    return f"It was spent{f' {doing}' if doing else ''}{place or ' in code of yours'}."


RULE = Rule("before_loop", judge)
