"""What the kernel says of one process in `/proc/<pid>/stat`."""

from __future__ import annotations

STARTED = 19  # place of the start time, in clock ticks since boot (field 22 of proc_pid_stat(5))


def stat_fields(pid: int | str, proc: str = "/proc") -> list[str]:
    """The fields from the state on (field 3); empty where the process is gone. The name before them
    is left out: it may hold anything, also brackets, blanks and bytes that are no text."""
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []
