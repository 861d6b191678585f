"""The health of a place where data lives: measured apart, judged here."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.storage import FileSystem, StorageCheck, Timing
from jupyter_ioscope.paths import absolute, path_text
from jupyter_ioscope.storage import answered, apart, filesystems, for_loader, kinds, thresholds
from jupyter_ioscope.storage.cgroups import Groups
from jupyter_ioscope.units import bytes_text, is_number, percent, seconds

# Seconds without an answer to one step after which a device counts as hanging.
SILENCE_S = (6.0, 30.0)
_TOTAL_S = (12.0, 120.0)
_ABOUT_S = (3.0, 20.0)  # as a healthy disk takes
_IN_LINE = 0.05  # of the time of the reads: worth a sentence


def check(
    path: str | os.PathLike[str],
    quick: bool = True,
    profile: Profile | None = None,
    silence_s: float | None = None,
    on_step: Callable[[str], None] | None = None,
) -> StorageCheck:
    """Measure and judge a folder or a file. See `ioscope.check_storage`.

    Raises:
        InputError: the place cannot be measured; one sentence says why.
        CaptureError: the measuring process could not be started.
    """
    asked = path_text(path, wanted="the path of a folder or a file")
    address = kinds.of_address(asked)
    if address is not None and address[0] not in ("file", "local"):
        return _not_measured(asked, quick)
    asked = kinds.local_path(asked)
    if silence_s is not None and not (is_number(silence_s) and silence_s > 0):
        raise InputError(f"silence_s is {silence_s!r}: give the seconds to wait, more than 0")
    place = absolute(asked)
    began, nfs = time.monotonic(), filesystems.nfs_counters()
    silence = SILENCE_S[not quick] if silence_s is None else silence_s
    total_s = max(silence, _TOTAL_S[not quick])
    told = _told(on_step, quick)
    outcome = apart.run("check", silence, total_s, told, path=place, quick=quick)
    if outcome.refused:
        raise InputError(outcome.refused)
    rows = _merged(outcome.rows)
    real = str(rows.get("look", {}).get("path", place))
    found = filesystems.of_path(real)
    check = _judged(rows, found, outcome, quick, profile, time.monotonic() - began)
    return dataclasses.replace(check, nfs_during=filesystems.nfs_since(nfs, found.nfs))


def _told(
    on_step: Callable[[str], None] | None, quick: bool
) -> Callable[[Mapping[str, Any]], None] | None:
    """Passes each step on as it begins; None where nobody listens."""
    if on_step is None:
        return None
    on_step(f"the check takes about {seconds(_ABOUT_S[not quick])}")

    def on_row(row: Mapping[str, Any]) -> None:
        if "doing" in row:
            on_step(f"checking: {row['doing']}")

    return on_row


def _not_measured(address: str, quick: bool) -> StorageCheck:
    found = filesystems.of_path(address)
    return StorageCheck(
        path=address,
        kind="address",
        quick=quick,
        file_system=found,
        verdict="unknown",
        reasons=("an address is not measured; give the path of a mount or a copy",),
        judged=(),
        timings=(),
        for_loader=(),
        notes=(),
    )


def _merged(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What each step said in all; timings by their name."""
    found: dict[str, dict[str, Any]] = {"timings": {}, "written": {"bytes": 0}}
    for row in rows:
        found.setdefault(str(row["step"]), {}).update(row)
        if "timing" in row:
            found["timings"][row["timing"]["name"]] = dict(row)
            found["written"]["bytes"] += int(row.get("bytes", 0))
    return found


def _judged(
    rows: Mapping[str, Mapping[str, Any]],
    file_system: FileSystem,
    outcome: apart.Outcome,
    quick: bool,
    profile: Profile | None,
    took_s: float,
) -> StorageCheck:
    look, timings = rows.get("look", {}), _timings(rows["timings"], file_system)
    _, iowait = rows.get("quiet", {}).get("shares", (-1.0, -1.0))
    judged = thresholds.judge(timings, iowait, float(rows.get("quiet", {}).get("lowest", -1.0)))
    verdict, reasons = thresholds.overall(judged), list(thresholds.reasons(judged))
    if outcome.silent:
        verdict = "dangerous"
        reasons.insert(0, f"the storage does not answer: given up while {outcome.silent}")
    if verdict == "unknown":
        reads = (row for row in timings if row.how and row.name.endswith("read"))
        reasons += [f"{row.name} is not judged: {row.how}" for row in reads]
    place = str(look.get("path", file_system.path))
    told: tuple[str, ...] = ()
    if profile is not None:
        told = tuple(for_loader.sentences(profile, place, file_system.mount_point, timings))
    return StorageCheck(
        path=place,
        kind="folder" if look.get("folder", True) else "file",
        quick=quick,
        file_system=file_system,
        verdict=verdict,
        reasons=tuple(reasons),
        judged=judged,
        timings=timings,
        for_loader=told,
        notes=tuple(_notes(rows, file_system, outcome)),
        written_bytes=int(rows["written"]["bytes"]),
        free_bytes=int(look.get("free", -1)),
        work_folder=str(rows.get("folder", {}).get("path", "")),
        resident_fraction=float(rows.get("sequential read", {}).get("resident", -1.0)),
        iowait_before=iowait,
        pressure_before=rows.get("quiet", {}).get("shares", (-1.0, -1.0))[0],
        pressure_during=rows.get("during", {}).get("shares", (-1.0, -1.0))[0],
        seconds=took_s,
    )


def _timings(found: Mapping[str, Mapping[str, Any]], file_system: FileSystem) -> tuple[Timing, ...]:
    return tuple(
        answered.by(row, file_system) if "from_device" in row else _plain(row["timing"])
        for row in found.values()
    )


def _plain(values: Mapping[str, Any]) -> Timing:
    """Requests that no cache could answer, or whose answer always comes from the kernel."""
    name = values["name"]
    if name in ("open", "stat"):
        how = "names and attributes that the kernel may keep: what a second epoch sees"
        return answered.timing_of({**values, "how": how, "answered_by": "unproven"})
    how = "with a final fsync" if name == "sequential write" else ""
    by = "device" if how else "unproven"
    return answered.timing_of({**values, "how": how, "answered_by": by})


def _notes(
    rows: Mapping[str, Mapping[str, Any]],
    file_system: FileSystem,
    outcome: apart.Outcome,
) -> Iterator[str]:
    folder = rows.get("folder", {}).get("path", "")
    if outcome.left:
        yield f"The folder {outcome.left} is left over: remove it when the storage answers again."
    elif folder:
        size = bytes_text(rows["written"]["bytes"])
        yield f"{size} were written in the private folder {folder} and removed again."
    if outcome.stuck_pid:
        yield (
            f"Process {outcome.stuck_pid} waits inside the kernel for the storage and ends when "
            "that answers; this process does not wait."
        )
    if folder and "sequential read" in rows:
        yield (
            "The reads are of data written a moment before, which a cache inside the device, or "
            "of the host below a virtual machine, may still hold: name a file of your data set to "
            "have old data read."
        )
    reads = [row["timing"] for row in rows["timings"].values() if row["timing"]["queued_s"] > 0]
    total_s, stood_s = (sum(row[name] for row in reads) for name in ("seconds", "queued_s"))
    if stood_s > _IN_LINE * (total_s + stood_s):
        yield (
            f"{percent(stood_s / (total_s + stood_s))} of the time of its reads the check stood in "
            "line for a core, because other programs kept them busy: that time is not counted."
        )
    during, before = (rows.get(step, {}).get("shares", (-1.0,))[0] for step in ("during", "quiet"))
    if during >= 0:
        yield (
            f"Some program waited for I/O {percent(before)} of a quiet moment before, and "
            f"{percent(during)} of the time meanwhile, the check itself included."
        )
    for limit in Groups().io_limits():
        many = bytes_text(limit.per_s) if limit.what.endswith("bytes") else f"{limit.per_s:,}"
        yield (
            f"A control group limits device {limit.device} to {many} a second "
            f"({limit.what}, {limit.source})."
        )
    for option in file_system.harmful:
        yield f"Mount option {option.option}: {option.effect}; {option.advice}."
