"""More threads want to run than there are cores, by the user's own choice."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import NOISE_SHARE, Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.readings import ThreadReadings
from jupyter_ioscope.units import percent, significant

# Measured on held-out loaders: below 1.5 runnable threads a core nothing was gained by fewer.
CROWDED = 1.5
# Of the threads that want to run, so many must be helpers for the threads to be the cause.
LEAST_HELPERS = 0.3
_MADE_BY_THREADS = ("head_of_line_blocking", "lock_contention", "blocked_unseen")
# What a worker that waits for threads of its own library is seen in.
_FOR_THREADS = ("lock", "other")
# Threads that carry batches and descriptors; they are no pool of a library.
_CARRIERS = ("_serve", "QueueFeeder", "ioscope")


def judge(facts: Facts) -> Finding | None:
    """Time that fetches, hand-over and step stood in line for a core, when workers or threads of
    native libraries made the line; what they stood behind other programs is not in it.

    `share` is that time's part of the loop. Fewer workers do not give it all back: the cores stay
    as fast as they are. `low` is what remains if they were used without any loss.
    """
    if not facts.batches:
        return None
    crowd = facts.runnable / facts.cores
    inside, beside = _helpers(facts, True), _helpers(facts, False)
    threads = inside > LEAST_HELPERS * facts.runnable
    main = beside > LEAST_HELPERS * facts.runnable
    many = not facts.alone and facts.workers > facts.cores
    if crowd <= CROWDED or not (many or threads or main):
        return None
    line = _gain(facts, main, threads)
    floor = max(0.0, 1.0 - facts.tree_cpu_ns / facts.cores / facts.loop.wall_ns)
    starts = 0.0 if threads or main else _surplus_starts(facts)
    least, most = min(line.share, floor) + starts, line.high + starts
    gain = Gain(min(1.0, line.share + starts), min(1.0, least), min(1.0, most))
    return finding(
        facts,
        gain,
        cause="thread_oversubscription" if threads or main else "too_many_workers",
        resource="run_queue",
        title=_title(threads, main),
        evidence=(
            f"On average {significant(facts.runnable, 2)} threads wanted to run on "
            f"{_words.cores_text(facts)}"
            + (f", {significant(inside + beside, 2)} of them threads of native libraries."
               if threads or main else "."),
            _words.part_line(facts, "run_queue"),
            f"Starting those that no core is there for took {percent(starts)} of the loop's time."
            if starts >= NOISE_SHARE
            else "",
            _settings(facts) if threads or main else "",
            _words.taken_line(facts),
        ),
        advice=_advice(facts, threads, main),
        toggles=_toggles(threads, main),
        # Batches that the crowd holds up, and workers that wait for their own threads, are no
        # troubles of their own.
        refines=_MADE_BY_THREADS if threads or main else ("first_batch_setup",),
    )  # fmt: skip


def _surplus_starts(facts: Facts) -> float:
    """Part of the loop that starting the workers beyond the cores took, were all alike."""
    surplus = max(0.0, 1 - facts.cores / max(1, facts.workers))
    return min(1.0, sum(facts.start_ups_ns) * surplus / facts.loop.wall_ns)


def _toggles(threads: bool, main: bool) -> tuple[str, ...]:
    if threads:
        return ("threads_per_worker", "fewer_workers")
    return () if main else ("fewer_workers", "workers")


def _helpers(facts: Facts, in_workers: bool) -> float:
    """Mean number of threads of native libraries that ran or wanted to."""
    rows = [row for row in facts.profile.threads if native(row) and (row.worker >= 0) is in_workers]
    return sum(row.run_ns + row.run_queue_ns for row in rows) / facts.loop.wall_ns


def native(row: ThreadReadings) -> bool:
    return row.role == "other" and not any(name in row.name for name in _CARRIERS)


def _gain(facts: Facts, main: bool, threads: bool) -> Gain:
    """Of fetches and hand-over as `gain_queue`, and, where workers have native threads, what they
    wait for those; of the step where the consumer's own native threads crowd the cores:
    it waits for them as long as they stand in line."""
    line = facts.gain_queue()
    if threads:
        line = _plus(line, facts.gain_blocked(*_FOR_THREADS))
    if main:
        queue = facts.gain(Without(step=_queued_step(facts)))
        line = queue if queue.share > line.share else line
    return line.times(facts.own_part_of_line)


def _plus(one: Gain, two: Gain) -> Gain:
    return Gain(*(min(1.0, a + b) for a, b in zip(one, two, strict=True)))


def _queued_step(facts: Facts) -> float:
    """Of the consumer's busy time, the part in line for a core."""
    rows = [row for row in facts.profile.threads if row.role == "consumer"]
    busy_ns = sum(row.run_ns + row.run_queue_ns for row in rows)
    return sum(row.run_queue_ns for row in rows) / busy_ns if busy_ns else 0.0


def _title(threads: bool, main: bool) -> str:
    if threads:
        return "Threads inside the workers crowd the cores"
    if main:
        return "Native threads of this process crowd the cores"
    return "There are more busy workers than cores"


def _settings(facts: Facts) -> str:
    """`OMP_NUM_THREADS=16 is set.` What the workers set themselves is not known."""
    found = [f"{name} is {value}" for name, value in facts.profile.machine.native_threads
             if "THREADS" in name.upper()]  # fmt: skip
    return f"In this process {', '.join(found)}." if found else ""


def _advice(facts: Facts, threads: bool, main: bool) -> str:
    fitting = _words.own_cores(facts)
    if threads:
        return (
            "Let each worker use one thread: in worker_init_fn torch.set_num_threads(1), "
            "cv2.setNumThreads(0) and threadpoolctl.threadpool_limits(1), or OMP_NUM_THREADS=1, "
            "OPENBLAS_NUM_THREADS=1 and MKL_NUM_THREADS=1 before the start."
        )
    if main:
        left = max(1, fitting - (0 if facts.alone else min(facts.workers, fitting - 1)))
        return (
            f"Let this process use {left} native thread{'' if left == 1 else 's'} "
            f"(torch.set_num_threads({left}), threadpoolctl.threadpool_limits({left})): "
            f"{_words.cores_text(facts)} are shared with the workers."
        )
    return (
        f"Use {fitting} worker{'' if fitting == 1 else 's'}: {facts.workers} share "
        f"{_words.cores_text(facts)}. It saves memory and start-up, and what the crowding wastes."
    )


RULE = Rule("oversubscribed", judge)
