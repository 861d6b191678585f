"""More threads want to run than there are cores, by the user's own choice."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import significant

# Measured on held-out loaders: below 1.5 runnable threads a core nothing was gained by fewer.
CROWDED = 1.5


def judge(facts: Facts) -> Finding | None:
    """Time that fetches and hand-over stood in line for a core, when workers or their threads made
    the line; what they stood behind other programs is not in it.

    `share` is that time's part of the loop. Fewer workers do not give it all back: the cores stay
    as fast as they are. `low` is what remains if they were used without any loss.
    """
    if facts.alone or not facts.batches:
        return None
    crowd = facts.runnable / facts.cores
    threads = facts.helper_threads_runnable > 0.3 * facts.runnable
    if crowd <= CROWDED or not (facts.workers > facts.cores or threads):
        return None
    line = facts.gain_queue().times(facts.own_part_of_line)
    floor = max(0.0, 1.0 - facts.tree_cpu_ns / facts.cores / facts.loop.wall_ns)
    gain = Gain(line.share, min(line.share, floor), line.high)
    fitting = max(1, int(facts.cores))
    return finding(
        facts,
        gain,
        cause="thread_oversubscription" if threads else "too_many_workers",
        resource="run_queue",
        title="Threads inside the workers crowd the cores"
        if threads
        else "There are more busy workers than cores",
        evidence=(
            f"On average {significant(facts.runnable, 2)} threads wanted to run on "
            f"{_words.cores_text(facts)}.",
            _words.part_line(facts, "run_queue"),
            _words.taken_line(facts),
        ),
        advice=(
            "Let each worker use one thread (torch.set_num_threads(1), OMP_NUM_THREADS=1 before "
            "the start)."
            if threads
            else f"Use {fitting} workers: {facts.workers} share {_words.cores_text(facts)}. It "
            "saves memory and start-up, and what the crowding wastes."
        ),
        toggles=() if threads else ("workers",),
    )


RULE = Rule("oversubscribed", judge)
