"""What rules about the work in fetches share: what removing a part of it would gain."""

from __future__ import annotations

from statistics import median

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import WAITS
from jupyter_ioscope.units import plus_minus

# What a finding about a kind of work says more exactly than the general ones.
CPU_CAUSES = ("decode_cpu", "no_workers_cpu_bound")
WAIT_CAUSES = (
    "no_workers_latency_bound",
    "disk_latency",
    "disk_bandwidth",
    "page_fault_io",
)
# Parts of time off the CPU that the work itself waits for; the run queue is others' doing.
_OWN_WAITS = (*WAITS, "lock", "other")

_STANDS_OUT = 0.3
_MOSTLY = 0.5
_IN_WORDS = {
    "decoding pictures": ("image_decode", "image_open"),
    "resizing pictures": ("image_resize",),
    "other work on pixels": ("image_other",),
    "decoding sound or video": ("audio_decode",),
    "unpacking compressed bytes": ("unpack", "unpack_seek"),
    "tokenising": ("tokenise", "tokenise_batch"),
    "parsing text": ("text_parse", "regex"),
    "reading files": ("file_read", "file_open", "array_load", "npz_member", "container_read"),
    "queries": ("container_query",),
    "unpickling": ("unpickle",),
    "rows of a data frame": ("table_rows",),
    "making tensors out of Python numbers": ("tensor_build", "convert", "to_python"),
    "joining items": ("collate",),
    "Python code of your own": ("user",),
}


def resource(facts: Facts) -> str:
    """Where CPU work of fetches is done."""
    return "main_cpu" if facts.alone else "worker_cpu"


def gain_of_work(facts: Facts, *kinds: str, saved: float = 1.0) -> Gain:
    """Gain of removing a part `saved` of these kinds of work: their CPU, and their waits where
    stacks of blocked instants tell them (else the waits of all work alike)."""
    part = facts.work.fraction(*kinds)
    waits: tuple[float, float] | None = None
    if facts.blocked_work is not None:
        waits = facts.blocked_work.fraction(*kinds)
    if part[0]:
        saved *= max(0.0, 1 - first_fetches(facts) / part[0])
    return gain_of_part(facts, part, waits, saved)


def first_fetches(facts: Facts) -> float:
    """What the first fetch of each process took longer than its later ones, as a part of the time
    in all fetches: opening, loading and importing what later fetches find there. Samples of such
    work are not told from the others, so any work may be among it. 0 where there are no later ones.
    """
    first: dict[int, int] = {}
    later: list[int] = []
    for row in sorted(facts.fetches, key=lambda row: row.start_ns):
        if row.pid in first:
            later.append(row.fetch_ns)
        else:
            first[row.pid] = row.fetch_ns
    if not later:
        return 0.0
    usual = median(later)
    longer = sum(max(0.0, time_ns - usual) for time_ns in first.values())
    return longer / max(1, sum(later) + sum(first.values()))


def gain_of_part(
    facts: Facts,
    part: tuple[float, float],
    waits: tuple[float, float] | None = None,
    saved: float = 1.0,
) -> Gain:
    """Gain of removing `part` (fraction, error) of the fetches' wall time, of which `waits` is the
    fraction of their blocked time. Time in the run queue counts as work, not as wait."""
    blocked, queued = _off_cpu(facts)
    cpu, cpu_error = part
    if waits is None:
        wait, wait_error = part
    else:
        wait, wait_error = waits
        if blocked < 0.95:
            cpu = min(1.0, max(0.0, (part[0] - blocked * wait) / (1 - blocked)))
            cpu_error = min(0.5, together(part[1], blocked * wait_error) / (1 - blocked))
    off = blocked / (blocked + queued) if blocked + queued > 0 else 0.0
    return facts.gain(
        Without(cpu=saved * cpu, off_cpu=saved * wait * off),
        Without(cpu=saved * cpu_error, off_cpu=saved * wait_error * off),
    )


def _off_cpu(facts: Facts) -> tuple[float, float]:
    """(blocked, in the run queue) as fractions of the time inside fetches."""
    blocked = sum(facts.part_ns(name) for name in _OWN_WAITS)
    queued = facts.part_ns("run_queue")
    inside = blocked + queued + facts.part_ns("gil") + facts.part_ns("cpu")
    return (blocked / inside, queued / inside) if inside else (0.0, 0.0)


def cpu_ns_per_sample(facts: Facts) -> float:
    """CPU of a fetch over its samples; 0 where no samples are known."""
    samples = sum(row.samples for row in facts.fetches if row.samples > 0)
    return sum(row.cpu_ns for row in facts.fetches) / samples if samples else 0.0


def ns_per_sample(facts: Facts, *kinds: str) -> float:
    """Time of these kinds of work over the samples that were fetched, without standing in line for
    a core: that is not theirs."""
    samples = sum(row.samples for row in facts.fetches if row.samples > 0)
    whole = sum(row.fetch_ns for row in facts.fetches) * (1 - _off_cpu(facts)[1])
    return facts.work.fraction(*kinds)[0] * whole / samples if samples else 0.0


def collecting(facts: Facts) -> tuple[str, ...]:
    """The collector's cause, where it runs for less than half of the fetching: it then runs for
    the objects that the work makes."""
    try:
        part = facts.storage.gc_fraction_of_fetches
    except NotMeasuredError:
        return ()
    return ("gc_pauses",) if part < _MOSTLY else ()


def seen_line(facts: Facts, what: str, *kinds: str) -> str:
    """`62 ± 5 % of 300 stacks seen while fetching are in parsing text (JSONDecoder.decode).`"""
    fraction, error = facts.work.fraction(*kinds)
    names = facts.work.functions(*kinds)
    told = f" ({', '.join(names)})" if names else ""
    return (
        f"{plus_minus(100 * fraction, 100 * error, 1)} % of {facts.work.samples:,} stacks seen "
        f"while fetching are in {what}{told}."
    )


def place_line(facts: Facts, *kinds: str) -> str:
    """Where in the user's code it is called; empty where unknown."""
    place = facts.work.where(*kinds)
    return f"It is called from {place}." if place else ""


def work_line(facts: Facts) -> str:
    """What most of the fetching is, in words; empty where no kind of work stands out."""
    try:
        mix = facts.work
    except NotMeasuredError:
        return ""
    shares = {what: mix.fraction(*kinds) for what, kinds in _IN_WORDS.items()}
    best = max(shares, key=lambda what: shares[what][0])
    share, error = shares[best]
    if share < _STANDS_OUT:
        return ""
    return f"{plus_minus(100 * share, 100 * error, 1)} % of the fetching is {best}."


def more_workers_too(facts: Facts) -> str:
    """What more workers would do besides; empty where there is no core for them."""
    more = _words.more_workers(facts)
    if not more:
        return ""
    return f" Until then, num_workers={more} spreads it over {_words.cores_text(facts)}."
