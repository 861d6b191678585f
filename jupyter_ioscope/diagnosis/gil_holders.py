"""Which threads run Python while others of their process stand in line for the GIL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from jupyter_ioscope.diagnosis.hot import users
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, ThreadReadings

_LEAST_CORE = 0.02  # a thread that runs less keeps nobody waiting


class Runner(NamedTuple):
    """A thread and what it runs: `core_fraction` is its part of one core, over its own life;
    `where` the line it was seen in most, "" where unknown."""

    name: str
    core_fraction: float
    where: str
    threads: int = 1  # of them with one name and one line


def runners(profile: Profile, pids: Iterable[int], fetching: str) -> list[Runner]:
    """Threads of these processes beside those that fetch, most CPU first; alike ones together.

    Exact CPU times say who runs, and two threads of Python that want to run do so in turns: who
    runs while another stands in line for the GIL has it, unless it computes outside of Python.
    """
    wanted = set(pids)
    found: dict[tuple[str, str], list[float]] = {}
    for row in profile.threads:
        wall_ns = row.last_ns - row.first_ns
        if row.pid not in wanted or row.role == fetching or wall_ns <= 0:
            continue
        if row.run_ns < _LEAST_CORE * wall_ns:
            continue
        where = _where(profile, row)
        key = (_family(row.name), where)
        found.setdefault(key, []).append(row.run_ns / wall_ns)
    rows = [Runner(name, sum(parts), where, len(parts)) for (name, where), parts in found.items()]
    return sorted(rows, key=lambda row: -row.core_fraction)


def _family(name: str) -> str:
    """`ThreadPoolExecutor-0_3` and its siblings have one name: the number at the end goes."""
    stem = name.rstrip("0123456789").rstrip("_-")
    return stem or name


def _where(profile: Profile, reading: ThreadReadings) -> str:
    stacks = profile.stacks
    counts: Counter[Frame] = Counter()
    for stack in stacks.stacks if stacks else ():
        if stacks is None or stack.pid != reading.pid or stack.thread != reading.name:
            continue
        own = [stacks.frames[i] for i in stack.frames if users(stacks.frames[i])]
        if own:
            counts[own[-1]] += stack.count
    if not counts:
        return ""
    names = Counter[tuple[str, str]]()
    for frame, count in counts.items():
        names[frame.name, frame.file] += count
    name, file = names.most_common(1)[0][0]
    lines = Counter({f.line: n for f, n in counts.items() if (f.name, f.file) == (name, file)})
    return f"{name} in {file}, line {lines.most_common(1)[0][0]}"
