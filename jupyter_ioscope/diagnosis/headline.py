"""The verdict in one sentence with numbers, and one or two more."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts
from jupyter_ioscope.diagnosis.ranking import BEFORE, OTHERS, STEP, rivals
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import DONE_BEFORE, MISS_BY_CHOICE
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.units import percent, plus_minus, seconds, significant

# Fewer batches than this do not show a steady loop.
FEW_BATCHES = 8
# What other programs cost is said in the first sentence from this part of the loop on.
MUCH = 0.2
# A transform that is not kept is told from this part of the cell on.
_LONG_MADE = 0.2
# Beside a step that comes first: what another cause has to cost, and how long the loop has to wait,
# for the loader to be worth a look after all.
_WORTH, _WAITS_TOO = 0.1, 0.3
NO_BATCH = "The loader gave no batch."
# States in words, for a cell that got its data from no loader.
# Exact times of threads are read now and then: of a shorter cell they tell of what was before it.
_LEAST_CELL_S = 0.2
_DOING = {
    "running": "computing",
    "cpu_elsewhere": "waiting for threads that computed",
    "disk": "in calls on files",
    "page_fault": "waiting for memory-mapped files",
    "network": "waiting for the network",
    "poll": "waiting for an event",
    "sleep": "sleeping",
    "pipe": "waiting for another process",
    "futex": "waiting for another thread",
    "wait_child": "waiting for a child process",
}


def headline(facts: Facts, findings: Sequence[Finding]) -> str:
    """One sentence. It names the loop's waiting, the number everything else explains."""
    profile = facts.profile
    first = findings[0] if findings else None
    if not profile.loaders and not profile.epochs and not profile.batches:
        return _of_unrecorded(profile, first)
    if not profile.batches:
        return f"The loader gave no batch: {_small(first.title)}." if first else NO_BATCH
    if first and first.resource in BEFORE and facts.before_ns > facts.loop.wall_ns:
        before, loop = seconds(facts.before_ns / 1e9), seconds(facts.loop_s)
        return f"The loop took {loop}, but {before} passed before it began."
    if facts.too_short:
        return f"The loop took only {seconds(facts.loop_s)}: too short to say what limits it."
    count = len(profile.batches)
    if count < FEW_BATCHES:
        only = "one batch" if count == 1 else f"{count} batches"
        if first and first.resource == "start_up":
            spent = seconds(first.cost_s)
            return f"{only[0].upper()}{only[1:]} came; {spent} passed before the first was fetched."
        return f"Only {only} came: too few to say what limits the loop."
    waited = f"the loop waited for data {percent(facts.waits.wait_fraction)} of the time"
    if first and first.cause == "not_loader_bound" and facts.waits.wait_fraction < 0.5:
        return f"{_step_is_first(facts, findings)}; {waited}."
    if first and STEP in first.refines and facts.waits.wait_fraction < 0.5:
        return _of_step(facts, first)
    if first and first.harm and first.share < NOISE_SHARE:  # it is not what the loop waits for
        return f"{first.title}. {waited[0].upper()}{waited[1:]}."
    cause = f": {_small(first.title)}" if first and first.cause not in (STEP, OTHERS) else ""
    return f"{waited[0].upper()}{waited[1:]}{cause}{_meanwhile(facts, findings)}."


def _of_unrecorded(profile: Profile, first: Finding | None) -> str:
    """No loader is known: what is said is about the whole cell, and says so."""
    if first is None:
        nothing = "No DataLoader and no Hugging Face dataset was iterated in this cell."
        return nothing + _elsewhere(profile)
    return (
        f"{first.title}. No loader was recognised: the whole cell was judged, and how many batches "
        "it got is not known."
    )


def _elsewhere(profile: Profile) -> str:
    """Loops may have run in processes that the cell started, where nothing of ours looks."""
    count = len({use.pid for use in profile.processes} - {profile.pid})
    if not count:
        return ""
    which = "another process, whose" if count == 1 else f"{count} other processes, whose"
    return (
        f" It started {which} loops are not recorded: use ioscope.profile() in the function that "
        "runs there."
    )


def _step_is_first(facts: Facts, findings: Sequence[Finding]) -> str:
    """Nothing to fix is said only where hardly anything but the step takes time."""
    others = [row for row in findings[1:] if row.cause != OTHERS and row.share >= _WORTH]
    if others or facts.waits.wait_fraction >= _WAITS_TOO:
        return "Your own step takes most of the time"
    return "Nothing to fix here: your own step is the limit"


def _of_step(facts: Facts, first: Finding) -> str:
    """The loader keeps up, and something in the step can be left out."""
    waited = percent(facts.waits.wait_fraction)
    return f"{first.title}; the loop waited for data {waited} of the time."


def _small(title: str) -> str:
    return title[0].lower() + title[1:]


def _meanwhile(facts: Facts, findings: Sequence[Finding]) -> str:
    """Other programs, where they cost the loop much: all its times are longer for them."""
    if not any(row.cause == OTHERS and row.share >= MUCH for row in findings):
        return ""
    taken = significant(facts.taken_cores, 2)
    cores = f"{facts.cores:g} core" + ("" if facts.cores == 1 else "s")
    return f", while other programs kept {taken} of {cores} busy"


def detail(facts: Facts, findings: Sequence[Finding], apart: bool) -> str:
    """What holds the loop back, with its evidence, and how far behind the next cause is."""
    if not facts.profile.batches:
        lines = [line for row in findings[:1] for line in (_would_free(facts, row), *row.evidence)]
        lines += [_ended(facts), "" if findings else _without_a_loader(facts)]
        return " ".join(line for line in lines if line)
    if not findings and (facts.too_short or len(facts.profile.batches) < FEW_BATCHES):
        return "Run it over more batches, or more often, to see where its time goes."
    if not findings:
        return " ".join(
            (
                "No single cause stands out: none would free 5 % of the loop's time and some "
                "tenths of a second of it.",
                _not_kept(facts),
            )
        ).strip()
    first = findings[0]
    lines = _cost_lines(facts, first, headline(facts, findings))
    if first.cause != "not_loader_bound":
        lines += first.evidence[:1]
    if first.where and not any(first.where in line for line in lines):
        lines += [line for line in first.evidence if first.where in line][:1]
    others = rivals(first, findings[1:])
    if others:
        lines.append(_next(first, others[0], apart))
    if not any(row.cause.startswith("hf_map_") for row in findings):
        lines.append(_not_kept(facts))
    return " ".join(line for line in lines if line)


def _not_kept(facts: Facts) -> str:
    """A long transform of a dataset whose result the user chose not to keep: no fault, but whoever
    wonders about the time before the loop should read where it went."""
    rows = [row for row in facts.profile.transforms if row.why_missed.startswith(MISS_BY_CHOICE)]
    row = max(rows, key=lambda row: row.end_ns - row.start_ns, default=None)
    took_ns = row.end_ns - row.start_ns if row else 0
    if row is None or took_ns < _LONG_MADE * facts.profile.wall_ns:
        return ""
    why = row.why_missed.removeprefix(MISS_BY_CHOICE).removesuffix(DONE_BEFORE)
    called = f"{row.kind}({row.function.replace('.<locals>', '')})"
    return (
        f"Of the cell, {called} took {seconds(took_ns / 1e9)}, and will again in the next run: "
        f"{why}."
    )


def _cost_lines(facts: Facts, first: Finding, above: str) -> list[str]:
    """What removing the first cause would gain; its name too, unless it is said `above`."""
    named = _small(first.title) in _small(above)
    if first.harm and first.share < NOISE_SHARE:
        return [] if named else [f"{first.title}."]
    freed = _freed(facts, first)
    if first.cause == STEP:
        freed = freed.replace("without it", "without the step")
        named = True
    return [f"{freed[0].upper()}{freed[1:]}." if named else f"{first.title}: {freed}."]


def _ended(facts: Facts) -> str:
    ended = facts.profile.ended_by
    return f"The cell ended with {ended}." if ended else ""


def _would_free(facts: Facts, row: Finding) -> str:
    """What a cause costs a cell without batches; nothing where the loop never began."""
    if facts.profile.epochs:
        return ""
    return f"Without it the cell would take about {percent(row.share)} less time."


def _without_a_loader(facts: Facts) -> str:
    """What can be recorded, and what was seen of the threads meanwhile."""
    profile = facts.profile
    if profile.loaders or profile.epochs:
        return ""
    lines = ["Only loops over these are recorded batch by batch; a loop of your own is not."]
    own = [row for row in profile.threads if row.pid == profile.pid and row.run_ns > 0]
    if own and profile.wall_s >= _LEAST_CELL_S:
        cores = sum(row.run_ns / max(1, row.last_ns - row.first_ns, profile.wall_ns) for row in own)
        used = f"{significant(cores, 2)} of {facts.cores:g} cores"
        many = "thread" if len(own) == 1 else "threads"
        lines.append(f"{len(own)} {many} of this process used {used}.")
        lines.append(_gil_line(own))
    lines.append(_spent_line(profile))
    return " ".join(line for line in lines if line)


def _spent_line(profile: Profile) -> str:
    """What the cell's own thread did, where that was seen."""
    cell = Unrecorded(profile)
    if not cell.applies:
        return ""
    try:
        states, place = cell.states, cell.place_of_cell
    except NotMeasuredError:
        return ""
    doing = max(states, key=lambda state: states[state], default="")
    if doing not in _DOING:
        return ""
    where = f", mostly in {place}" if place else ""
    return (
        f"The cell's own thread spent {percent(states[doing])} of the time {_DOING[doing]}{where}."
    )


def _gil_line(rows: Sequence[ThreadReadings]) -> str:
    """How many threads stood in line for the GIL at a time, where there were any to speak of."""
    gil = STATES.index("gil")
    beats = max(len(row.states) for row in rows)
    mean = sum(row.states.count(gil) for row in rows) / beats if beats else 0.0
    if mean < 0.5:
        return ""
    return (
        f"On average {significant(mean, 2)} of them stood in line for the interpreter lock (GIL)."
    )


def _freed(facts: Facts, row: Finding) -> str:
    longer = row.cost_s > 1.01 * row.share * facts.loop_s  # a part of more than the loop
    what = "cell" if longer else "loop"
    error = 100 * (row.high - row.low) / 2
    if error > 10:
        low, high = 100 * row.low, percent(row.high, 0)
        return f"without it the {what} would take {low:.0f} to {high} less time"
    number = plus_minus(100 * row.share, error, 1) if error >= 0.5 else f"{100 * row.share:.0f}"
    return f"without it the {what} would take {number} % less time"


def _next(first: Finding, second: Finding, apart: bool) -> str:
    title = second.title[0].lower() + second.title[1:]
    if not apart:
        return f"It cannot be told apart from the next cause ({title})."
    if first.harm:
        return f"Beside it: {title}."
    if second.share > first.share:  # the loader's own causes come first
        return f"Beside it, with a larger share: {title}."
    far = "far behind" if second.share < 0.5 * first.share else "close behind"
    return f"Next cause, {far}: {title}."
