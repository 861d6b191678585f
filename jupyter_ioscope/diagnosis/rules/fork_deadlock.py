"""Workers hang on a lock that a thread of their parent held while they were forked."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.diagnosis.blocked_stacks import blocked_in
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import STATES, ThreadReadings
from jupyter_ioscope.units import seconds

# Blocked for so long, in nearly every sample since the loop of the worker began: a lock that
# somebody will let go of is free sooner, or the worker runs in between.
LEAST_S = 2.0
LEAST_BLOCKED = 0.95
MOST_RUNNING = 0.05
_FUTEX = STATES.index("futex")


def judge(facts: Facts) -> Finding | None:
    """A forked worker that never finished a fetch, always stands at a lock of its own process, and
    has no other thread that could let go of it: the thread that held it exists in the parent only.
    """
    profile = facts.profile
    if any(info.start_method not in (None, "fork") for info in profile.loaders):
        return None
    stuck = _stuck(profile)
    if not stuck:
        return None
    ended = [row.wait_end_ns for row in profile.batches]
    since_ns = max([min(row.first_ns for row in stuck), *ended])
    hung_ns = max(0, profile.end_ns - since_ns)
    share = min(1.0, hung_ns / profile.wall_ns) if profile.wall_ns else 0.0
    workers = sorted({row.worker for row in stuck})
    where = _where(profile)
    return Finding(
        cause="fork_deadlock",
        resource="lock",
        title="Workers hang on a lock that was held when they were forked",
        share=share,
        low=share,
        high=share,
        cost_s=hung_ns / 1e9,
        evidence=tuple(
            line
            for line in (
                f"{_subject(workers)} finished no fetch in {seconds(hung_ns / 1e9)} and stood at a "
                "lock of its own process in every sample. No other thread there could let go of "
                "it: a fork copies the lock, but not the thread that holds it.",
                f"The lock is waited for in {where}." if where else "",
                f"The cell ended with {profile.ended_by}." if profile.ended_by else "",
            )
            if line
        ),
        advice="Make the loader's workers before threads are started that hold locks (pools, "
        "loggers, clients), or make locks, connections and clients inside the worker "
        "(worker_init_fn, or on first use). If that cannot be: "
        'multiprocessing_context="forkserver" or "spawn". A library that used its own threads '
        "before the fork hangs the same way: torch.set_num_threads(1) in this process before the "
        "loader is made.",
        where=where,
        harm="run",
    )


def _stuck(profile: Profile) -> list[ThreadReadings]:
    fetched = {row.pid for row in profile.fetches}
    return [
        row
        for row in profile.threads
        if row.role == "worker"
        and row.pid not in fetched
        and _hangs(row)
        and not any(
            other.pid == row.pid and other.tid != row.tid and other.run_ns > 0.01 * _life_ns(row)
            for other in profile.threads
        )
    ]


def _life_ns(row: ThreadReadings) -> int:
    return row.last_ns - row.first_ns


def _hangs(row: ThreadReadings) -> bool:
    if _life_ns(row) < LEAST_S * 1e9 or not row.states:
        return False
    blocked = row.states.count(_FUTEX) / len(row.states)
    return blocked >= LEAST_BLOCKED and row.run_ns <= MOST_RUNNING * _life_ns(row)


def _where(profile: Profile) -> str:
    """The user's line that most of the waiting was seen in."""
    try:
        places = blocked_in(profile, "worker", ("futex",))
    except NotMeasuredError:
        return ""
    return places[0].where if places else ""


def _subject(workers: Sequence[int]) -> str:
    if len(workers) == 1:
        return f"Worker {workers[0]}"
    return "Each of the workers " + ", ".join(map(str, workers[:8]))


RULE = Rule("fork_deadlock", judge, without_batches=True)
