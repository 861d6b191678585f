"""What a probe is: something that can be opened on a process tree and then read cheaply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from jupyter_ioscope.model.profile import Gap


class Target(Protocol):
    """What a probe may know about the watched tree."""

    @property
    def proc(self) -> str:
        """Root of the proc file system, usually `/proc`."""

    @property
    def sys(self) -> str:
        """Root of the sys file system, usually `/sys`."""

    @property
    def pid(self) -> int:
        """The process at the top of the tree."""

    def pids(self) -> Iterable[int]:
        """All live processes of the tree."""


class SeriesInfo(NamedTuple):
    """Name and meaning of a series; see `model.readings.Series`."""

    name: str
    unit: str
    kind: str
    scope: str


class Reader(Protocol):
    """An opened probe. `read` returns one value for each of `series`, None where it failed.

    `gaps` holds what this machine cannot give; it may grow while reading. `facts` holds names
    found on opening, such as those of the GPUs.
    """

    series: Sequence[SeriesInfo]
    gaps: list[Gap]
    facts: Sequence[str]

    def read(self) -> Sequence[float | None]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Probe:
    """A plug-in of this package, bound to the constant PROBE.

    Attributes:
        name: the file's name.
        what: what is missing when the probe cannot be opened, for the gap.
        open: opens it; raises OSError, ValueError or `ProbeError` with the reason.
        period_s: shortest time between two readings.
        slow: opening takes long, so it is done beside the sampling.
    """

    name: str
    what: str
    open: Callable[[Target], Reader]
    period_s: float = 0.25
    slow: bool = False


class ProbeError(Exception):
    """This machine cannot give what the probe reads. The text is the reason."""


def reason_of(error: BaseException) -> str:
    """The reason for a gap, without the number of the error."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__
