"""What was noticed beside batches and readings: files, transforms, pauses, blocked stacks.

All `*_ns` times are CLOCK_MONOTONIC nanoseconds. `worker` is -1 for the consumer's process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jupyter_ioscope.model.readings import Frame

# When something happened, as its thread saw it.
#   setup   before the first iter(), or inside it
#   fetch   inside a fetch (of a worker, or of the consumer where there are no workers)
#   step    the consumer had a batch
#   other   none of these: threads beside the loop, workers between fetches
PHASES = ("setup", "fetch", "step", "other")


class FileUse(NamedTuple):
    """How one process opened one file (Python opens only: an audit hook sees no C library's).

    `mode` is "r", "w" (any form of writing) or "rw"; `size_bytes` is -1 where the file is gone.
    `filesystem` is the kernel's name of it ("ext4", "nfs4", "fuse.sshfs"), "" where unknown.
    """

    path: str
    pid: int
    worker: int
    phase: str
    mode: str
    opens: int
    size_bytes: int
    filesystem: str


class ProcessUse(NamedTuple):
    """Counters of one process between its first and its last reading; -1 where not readable.

    `read_calls` and `read_bytes` count system calls (page cache included), `device_read_bytes` what
    came from a device; memory is the private part (USS) at both ends.
    """

    pid: int
    worker: int
    first_ns: int
    last_ns: int
    read_calls: int
    read_bytes: int
    device_read_bytes: int
    write_calls: int
    write_bytes: int
    device_write_bytes: int
    first_private_bytes: int
    last_private_bytes: int
    peak_open_files: int
    open_files_limit: int
    # Memory of a worker that is no file's, as its loop began and ended: pages shared since the fork
    # are in it, so it grows by what is new, not by what is copied.
    first_anonymous_bytes: int = -1
    last_anonymous_bytes: int = -1
    # The cores it was bound to, where the profiled process itself may use others as well.
    bound_to: tuple[int, ...] = ()


class HeldFile(NamedTuple):
    """A file that processes were seen to hold open, by their descriptors now and then.

    A look is one at one process; the file was there in `seen` of `looks`. `opens` is how often the
    kernel saw it opened from `since_ns` on, by anybody, C libraries included: at least so often,
    for equal events in a row are counted once; -1 where it was not counted. `sharing` are processes
    with one and the same open file, so that they read through one position (empty: none, or nobody
    may look), and `positions` at how many different places it was seen.
    """

    path: str
    pids: tuple[int, ...]
    seen: int
    looks: int
    opens: int
    since_ns: int
    size_bytes: int
    sharing: tuple[int, ...] = ()
    positions: int = 0


class GcPause(NamedTuple):
    """One run of the garbage collector. Only those of at least 1 ms are kept."""

    pid: int
    worker: int
    start_ns: int
    end_ns: int
    generation: int
    collected: int


class SamplesAgain(NamedTuple):
    """Samples of a loader of a map dataset that were made more than once while the profile ran, of
    the few that were looked at: pairs of one index, and those of them whose values are the same."""

    loader: int
    compared: int
    alike: int


# Beginnings of `Transform.why_missed`: nothing was there yet; the user's own settings keep nothing.
# Any other reason is a fault that one can mend. The ending says that the same was done before in
# this process, so that keeping it would have helped.
FIRST_RUN = "first run"
MISS_BY_CHOICE = "by choice: "
DONE_BEFORE = " (the same was done before)"


class Transform(NamedTuple):
    """One `map`, `filter` or similar call of a dataset library while the profile ran.

    `function` is its qualified name; `cached` says that the result came from the cache, and
    `why_missed` why it did not, "" where it did or nobody knows.
    """

    library: str
    kind: str
    function: str
    rows: int  # -1 where unknown
    batched: bool
    batch_size: int  # -1 where it does not apply
    num_proc: int
    start_ns: int
    end_ns: int
    cpu_ns: int
    cached: bool
    why_missed: str
    columns: tuple[str, ...]


# Stands among the calls of a line for a true division by a number that is written there.
DIVIDED = "/number"


class LineCalls(NamedTuple):
    """What one line of the user's calls that leaves no frame of its own: names of built-in
    functions ("open"), of what modules give ("numpy.array"), and of methods (".split"); and
    `DIVIDED`.

    Line 0 stands for a whole file that was seen in the stacks, with telling calls anywhere in it:
    those that make randomness (the same data may give another sample), and those that have a
    picture decoded at reduced size.
    """

    file: str  # as in `readings.Frame`
    line: int
    names: tuple[str, ...]


class ImageSize(NamedTuple):
    """Width and height of one picture that fetches opened, in pixels, from its header."""

    path: str
    width: int
    height: int


class BlockedStack(NamedTuple):
    """One stack that a thread was blocked in, with the instants at which it was seen there.

    `state` is an index into `readings.STATES`; `frames` are indices into `BlockedStacks.frames`,
    outermost first; `seen_ns` are the instants. The last frame may be a wait itself instead of a
    function: its name is in brackets ("[fsync]", "[page fault]", "[flock] /tmp/x.lock"), its file
    empty. `turns`, equally long or empty, is how often the thread had let go of its core by then:
    two instants with one number belong to one wait.
    """

    role: str
    worker: int
    pid: int
    state: int
    frames: tuple[int, ...]
    seen_ns: tuple[int, ...]
    turns: tuple[int, ...] = ()


@dataclass(frozen=True)
class BlockedStacks:
    """Stacks of threads at instants at which they were blocked, with the state they were in.

    Taken by a thread inside each process, `rate_hz` times a second; instants at which a thread ran
    are left out, because such a thread is seen mostly where it lets go of the interpreter lock.
    """

    rate_hz: float
    frames: tuple[Frame, ...]
    stacks: tuple[BlockedStack, ...]
