"""What rules about the consumer's step share."""

from __future__ import annotations

from jupyter_ioscope.diagnosis import kinds
from jupyter_ioscope.diagnosis.blocked_stacks import blocked_in
from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.steps import StepTime, step_time
from jupyter_ioscope.errors import NotMeasuredError

# A part of the step is a cause of its own from this part of the loop on: less is within what two
# runs of one step differ by, and a step that computes writes a line now and then, too.
LEAST_GAIN = 0.1
# Kernel calls that put data into files or onto the disk.
_WRITES = ("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "write", "writev", "pwrite64",
           "pwritev", "msync", "close", "sendfile", "copy_file_range", "fallocate")  # fmt: skip


def step_of(facts: Facts) -> StepTime:
    return step_time(facts.profile, facts.batches)


def gain_of_step(facts: Facts, fraction: float, error: float) -> Gain:
    """What the loop would gain if this fraction of every step were gone; `error` is one standard
    error of the fraction."""
    return facts.gain(Without(step=min(1.0, fraction)), Without(step=error))


def written_bytes(facts: Facts) -> float:
    """Bytes that this process and its workers sent to the storage; 0 where unknown."""
    series = facts.profile.series.get("tree_write_bytes")
    return series.total() if series else 0.0


def read_bytes(facts: Facts) -> float:
    series = facts.profile.series.get("tree_read_bytes")
    return series.total() if series else 0.0


def wrote_in_step(facts: Facts) -> list[str]:
    """Files that the consumer opened for writing while it had a batch."""
    rows = facts.profile.files
    return [row.path for row in rows if row.phase == "step" and "w" in row.mode and row.worker < 0]


def saving_fraction(facts: Facts, step: StepTime) -> float:
    """Part of the steps that saves: in functions that save, or waiting for files. The two hardly
    overlap: waiting for the disk happens below functions of C, in the caller's frame."""
    return min(1.0, step.kinds.get(kinds.SAVING, 0.0) + syncing_fraction(facts, step))


def syncing_fraction(facts: Facts, step: StepTime) -> float:
    """Part of the steps that waits until written data is on the disk."""
    disk = step.disk[0] if writes(facts, step) else 0.0
    return max(disk, step.kinds.get(kinds.SYNCING, 0.0))


def writes(facts: Facts, step: StepTime) -> bool:
    """Whether waits for files in the step are writes, as far as anything tells."""
    try:
        places = blocked_in(facts.profile, "consumer", ("disk",), ("step",))
    except NotMeasuredError:
        places = []
    known = [row for row in places if row.call]
    if known:
        return sum(row.fraction for row in known if row.call in _WRITES) >= 0.5 * sum(
            row.fraction for row in known
        )
    if step.kinds.get(kinds.SAVING) or step.kinds.get(kinds.SYNCING) or wrote_in_step(facts):
        return True
    return written_bytes(facts) > read_bytes(facts)
