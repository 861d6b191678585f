"""A transform is shared out among more processes than its work pays for."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.hf_facts import HfFacts, in_file, name_of
from jupyter_ioscope.diagnosis.rules import _hf
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import Transform
from jupyter_ioscope.units import seconds

# CPU to start a process by fork, send it the function and fetch the result: measured 40 to 60 ms.
PROCESS_NS = 40_000_000
# Fewer samples of the processes say little about how long they worked.
_FEW_SAMPLES = 8
_LEAST_PART = 0.25


def judge(facts: Facts) -> Finding | None:
    """What a transform would gain if one process did all of its work."""
    known = HfFacts(facts)
    rows = [
        row
        for row in known.runs("map", "filter", "flatten_indices")
        if row.num_proc > 1 and _hf.took_ns(row) >= _hf.LEAST_NS
    ]
    if not rows:
        return None
    row = max(rows, key=_hf.took_ns)
    took_ns, alone_ns = _hf.took_ns(row), _alone_ns(facts, row, len(rows))
    freed = 1 - alone_ns / took_ns
    if freed < _LEAST_PART:
        return None
    fewer = 2 if alone_ns > 2e9 else 1
    return _hf.of_cell(
        known,
        took_ns - alone_ns,
        0.1 * took_ns,
        cause="hf_map_numproc_overhead",
        resource="start_up",
        title=f"{_hf.called(row)} uses {row.num_proc} processes for little work",
        evidence=(
            _hf.took_line(row),
            f"The work itself is about {seconds(alone_ns / 1e9)} for one process; starting "
            f"{row.num_proc}, sending them rows and joining what they return takes the rest.",
        ),
        advice=f"Leave num_proc out"
        f"{f' or use num_proc={fewer}' if fewer > 1 else ''}, and use batched=True instead: "
        "processes pay from some seconds of work for each on.",
        refines=("first_batch_setup", "hf_map_not_batched"),
        where=row.function,
    )


def _alone_ns(facts: Facts, row: Transform, others: int) -> float:
    """How long one process would take for the same work, beside other programs as busy as now.

    The CPU used tells the least, less what starting the processes cost. What the processes were
    seen doing inside the transform tells it with their waits: a function that waits for a server
    gains from processes. Standing in line for a core is neither: one process would not.
    """
    cpu_ns = max(0.0, row.cpu_ns - PROCESS_NS * row.num_proc)
    least = cpu_ns * _slower(facts)
    stacks = facts.profile.stacks
    samples = working = own = 0.0
    for stack in stacks.stacks if stacks else ():
        own += stack.count if stack.role == "consumer" else 0
        if stack.pid == facts.profile.pid or stack.role not in ("other", "worker"):
            continue
        frames = [stacks.frames[i] for i in stack.frames if 0 <= i < len(stacks.frames)]  # type: ignore[union-attr]
        at = [
            position
            for position, frame in enumerate(frames)
            if name_of(frame) == "_map_single" and in_file(frame, "datasets/arrow_dataset.py")
        ]
        pool = any("/multiprocess/" in frame.file.replace("\\", "/") for frame in frames)
        samples += stack.count if pool or at else 0
        working += stack.count if at else 0
    if samples >= _FEW_SAMPLES and own and others == 1:
        # The loop's own thread was sampled all the time: that is how often.
        inside_ns = working * facts.profile.wall_ns / own
        return least + max(0.0, inside_ns - cpu_ns * (1 + _line_for_cpu(facts)))
    if _hf.took_ns(row) > 2e9:
        raise NotMeasuredError("what the processes of a transform did", "they were not sampled")
    return least


def _line_for_cpu(facts: Facts) -> float:
    """How long the processes below this one stood in line for a core, over what they ran."""
    rows = [row for row in facts.profile.threads if row.pid != facts.profile.pid]
    ran_ns = sum(row.run_ns for row in rows)
    return sum(row.run_queue_ns for row in rows) / ran_ns if ran_ns else 0.0


def _slower(facts: Facts) -> float:
    try:
        return 1 + facts.taken_cores / facts.cores
    except NotMeasuredError:
        return 1.0


RULE = Rule("hf_map_numproc", judge)
