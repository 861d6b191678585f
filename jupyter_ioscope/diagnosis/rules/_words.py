"""Sentences that several rules share."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts
from jupyter_ioscope.diagnosis.spread import together
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.units import percent, plus_minus, seconds, significant

NAMES = {
    "cpu": "on the CPU, getting items",
    "run_queue": "waiting for a core",
    "disk": "waiting for the disk",
    "page_fault": "waiting for pages of memory-mapped files",
    "network": "waiting for the network",
    "sleep": "sleeping",
    "process": "waiting for another process",
    "gil": "waiting for the GIL",
    "lock": "waiting for a lock",
}
# Fewer cores than this are used by what a desktop or a container does anyway.
FEW_CORES = 0.25
# Part of a function's samples in one line from which it is that line alone that is named.
_ONE_LINE = 0.9
JOINING = (
    "return arrays or tensors from the dataset, and join them with one stack, not one by one and "
    "not through Python lists; where their lengths differ, fill one tensor of the full size row by "
    "row, or use torch.nn.utils.rnn.pad_sequence"
)


def who(facts: Facts) -> str:
    """The threads that fetch, as the subject of a sentence (plural verb follows "Workers")."""
    if facts.alone:
        return "The loop itself"
    return "The worker" if facts.workers == 1 else f"The {facts.workers} workers"


def waiting(facts: Facts) -> str:
    """Who waits, as the beginning of a title."""
    return "The loop waits" if facts.alone else "Workers wait"


def spends(facts: Facts) -> str:
    return "spends" if facts.alone or facts.workers == 1 else "spend"


def part_line(facts: Facts, part: str) -> str:
    """`The 2 workers spend 68 ± 4 % of their time waiting for the disk.`"""
    rows = facts.fetching
    wall_ns = sum(row.wall_ns for row in rows)
    if not wall_ns:
        return ""
    errors = [float(p.error_ns) for row in rows for p in row.parts if p.name == part]
    percent = 100 * facts.part_ns(part) / wall_ns
    error = 100 * together(*errors) / wall_ns
    number = plus_minus(percent, error, 1) if error >= 0.5 else f"{percent:.0f}"
    whose = "its" if facts.alone or facts.workers == 1 else "their"
    return f"{who(facts)} {spends(facts)} {number} % of {whose} time {NAMES[part]}."


def per_sample_line(facts: Facts, part: str) -> str:
    """`That is 8.9 ms a sample.` Empty where fetches are not known."""
    try:
        samples = sum(row.samples for row in facts.fetches if row.samples > 0)
    except NotMeasuredError:
        return ""
    if not samples:
        return ""
    return f"That is {seconds(facts.part_ns(part) / samples / 1e9)} a sample."


def where_line(facts: Facts) -> str:
    """`71 ± 3 % of the fetching was seen in decode in In [4], line 12.`

    Of a function that is seen in several lines it names the most frequent one, and its part.
    """
    try:
        hot = facts.hot
    except NotMeasuredError:
        return ""
    share = plus_minus(100 * hot.fraction, 100 * hot.error, 1)
    inside = f", mostly inside its call of {hot.below}" if hot.below else ""
    if not hot.line or hot.line_fraction >= _ONE_LINE:
        return f"{share} % of the fetching was seen in {hot.where}{inside}."
    line = f"{percent(hot.line_fraction)} of that in line {hot.line}"
    return f"{share} % of the fetching was seen in {hot.name} in {hot.file} ({line}){inside}."


def cores_text(facts: Facts) -> str:
    """`4 cores`, `1.5 cores` under a quota, `8 cores shared by 4 ranks`."""
    ranks = facts.profile.machine.ranks
    shared = f" shared by {ranks} ranks" if ranks > 1 else ""
    return f"{facts.cores:g} core" + ("" if facts.cores == 1 else "s") + shared


def own_cores(facts: Facts) -> int:
    """Whole cores of this process's part, where several ranks of one job share them; at least 1."""
    return max(1, int(facts.cores / max(1, facts.profile.machine.ranks)))


def cores_full(facts: Facts) -> bool:
    """Whether the loop and its workers use most of the cores they may use."""
    return facts.tree_cpu_ns > 0.7 * facts.cores * facts.loop.wall_ns


def more_workers(facts: Facts) -> int:
    """Workers worth trying for CPU-bound work: one a core, and one core for the consumer if it is
    busy for half of the time or more. 0 where there are that many already."""
    busy = facts.waits.consumer.fraction("step") if facts.waits.consumer else 0.0
    fitting = max(1, own_cores(facts) - (1 if busy >= 0.5 else 0))
    return fitting if fitting > facts.workers else 0


# Best first: most gain for least change of the data.
IMAGE_TOGGLES = ("draft_decode", "decode_once", "fast_decode", "opencv_decode")


def decodes_images(facts: Facts) -> bool:
    """Whether fetching was seen inside PIL."""
    stacks = facts.profile.stacks
    return stacks is not None and any("/PIL/" in frame.file for frame in stacks.frames)


def first_workers(facts: Facts) -> int:
    """Workers to begin with for fetches that wait."""
    return max(4, 2 * own_cores(facts))


def workers_that_wait(facts: Facts) -> str:
    """Advice for a loop that waits in its own fetches."""
    first = first_workers(facts)
    begin = f"Begin with num_workers={first}"
    shards = HfFacts(facts).number("shards") if facts.loader.dataset_kind == "iterable" else 0
    if 0 < shards < first:
        begin += (
            f" and as many shards: this stream has {shards}, and each is read by one worker (a "
            "list in gen_kwargs of from_generator, more files, or stream.reshard())"
        )
    return f"Use workers: they wait at the same time, and a waiting worker needs no core. {begin}."


def collate_fraction(facts: Facts) -> float:
    """Part of the fetches' time that collating takes; 0 where fetches are not known."""
    try:
        whole = sum(row.fetch_ns for row in facts.fetches)
        return sum(row.collate_ns for row in facts.fetches) / whole if whole else 0.0
    except NotMeasuredError:
        return 0.0


def queue_line(facts: Facts) -> str:
    """How much the fetching threads stood in line for a core; empty where it is little."""
    share = facts.busy_fraction("run_queue")
    if share < 0.15:
        return ""
    line = f"Another {percent(share)} of the busy time went into waiting for a core."
    return f"{line} {taken_line(facts)}".strip()


def taken_line(facts: Facts) -> str:
    """What other programs used; empty where it is little or not known."""
    try:
        taken = facts.taken_cores
    except NotMeasuredError:
        return ""
    if taken < FEW_CORES:
        return ""
    return f"Other programs kept {significant(taken, 2)} of {cores_text(facts)} busy meanwhile."
