"""A profile as a file that other tools open: speedscope, Perfetto and Chrome's trace viewer, folded
stacks.

Formats: speedscope's `file-format-spec.ts` (sampled profiles), the Trace Event Format's JSON object
(events M, X and C; times in microseconds), and the lines of Brendan Gregg's `flamegraph.pl`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jupyter_ioscope.errors import InputError, ProfileFileError
from jupyter_ioscope.model.files import write_whole
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import ROLES, Frame, Stack
from jupyter_ioscope.paths import path_text
from jupyter_ioscope.views.export_trace import trace_events
from jupyter_ioscope.views.flame_waits import GROUPS, phases_of, weighed
from jupyter_ioscope.views.places import Place, places_of
from jupyter_ioscope.views.words import clean, shorten

_SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
_NAME_LIMIT = 300


def export(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile in the format that the end of the file's name says: one of `ENDINGS`.

    Raises:
        InputError: the path is none, its ending is none of them, the folder is missing, or there
            is nothing to write.
        ProfileFileError: the file cannot be written.
    """
    target = Path(path_text(path, wanted="the path of the file to write"))
    made = next((make for end, make in ENDINGS.items() if target.name.endswith(end)), None)
    if made is None:
        raise InputError(
            f"cannot export to {target.name!r}: give a name that ends in {', '.join(ENDINGS)}"
        )
    if not os.path.isdir(target.parent):
        raise InputError(f"cannot export to {str(target)!r}: there is no folder {target.parent}")
    text = made(profile)
    try:
        write_whole(target, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ProfileFileError(
            f"cannot write {str(target)!r}: {error.strerror or error}"
        ) from error


def speedscope_text(profile: Profile) -> str:
    """One sampled profile a thread, in seconds, and one for the waits of workers and consumer."""
    frames: dict[Place, int] = {}
    profiles = [*_threads(profile, frames), *_waits(profile, frames)]
    if not profiles:
        raise InputError("this profile has no stacks to export: they were off or refused")
    return json.dumps(
        {
            "$schema": _SPEEDSCOPE,
            "name": clean(profile.label, 80) or "ioscope",
            "exporter": "ioscope",
            "activeProfileIndex": 0,
            "shared": {"frames": [_frame(place) for place in frames]},
            "profiles": profiles,
        },
        allow_nan=False,
    )


def folded_text(profile: Profile) -> str:
    """`worker 0;outer;inner 12`, a line a stack, in samples."""
    if profile.stacks is None or not profile.stacks.stacks:
        raise InputError("this profile has no stacks to export: they were off or refused")
    frames = [_folded_name(place) for place in places_of(profile.stacks.frames)]
    counts: dict[str, int] = {}
    for stack in profile.stacks.stacks:
        line = ";".join([_who(stack), *(frames[index] for index in stack.frames)])
        counts[line] = counts.get(line, 0) + stack.count
    return "".join(f"{line} {count}\n" for line, count in counts.items() if count > 0)


def trace_text(profile: Profile) -> str:
    """Waits, steps, fetches and states of threads as slices, series as counters."""
    document = {
        "displayTimeUnit": "ms",
        "otherData": {"label": clean(profile.label, 80), "exporter": "ioscope"},
        "traceEvents": list(trace_events(profile)),
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


ENDINGS: dict[str, Callable[[Profile], str]] = {
    ".speedscope.json": speedscope_text,
    ".trace.json": trace_text,
    ".folded": folded_text,
}


def _threads(profile: Profile, frames: dict[Place, int]) -> Iterator[dict[str, Any]]:
    stacks = profile.stacks
    if stacks is None or stacks.rate_hz <= 0:
        return
    numbers = _add(frames, stacks.frames)
    groups: dict[tuple[int, int, str], list[Stack]] = {}
    for stack in stacks.stacks:
        if stack.count > 0:
            order = ROLES.index(stack.role) if stack.role in ROLES else len(ROLES)
            groups.setdefault((order, stack.worker, _who(stack)), []).append(stack)
    for (_, _, who), group in sorted(groups.items()):
        # threads of one name cannot be told apart, and together last longer than the run
        several = sum(stack.count for stack in group) / stacks.rate_hz > 1.5 * profile.wall_s > 0
        name = f"{who}, several threads" if several else who
        yield _sampled(name, group, numbers, 1 / stacks.rate_hz)


def _waits(profile: Profile, frames: dict[Place, int]) -> Iterator[dict[str, Any]]:
    for _, label, role in GROUPS:
        waits = weighed(profile, role, phases_of(profile, role))
        group = [stack for stack in waits.stacks if stack.count > 0] if waits else []
        if waits and group:
            yield _sampled(label, group, _add(frames, waits.frames), 1e-6)


def _add(frames: dict[Place, int], new: Sequence[Frame]) -> list[int]:
    """Number places as they come; the number of each frame's place."""
    return [frames.setdefault(place, len(frames)) for place in places_of(new)]


def _sampled(
    who: str, stacks: list[Stack], numbers: Sequence[int], unit_s: float
) -> dict[str, Any]:
    """Samples have no instants, so that equal callers stand together instead."""
    stacks = sorted(stacks, key=lambda stack: [numbers[index] for index in stack.frames])
    weights = [round(stack.count * unit_s, 6) for stack in stacks]
    return {
        "type": "sampled",
        "name": who,
        "unit": "seconds",
        "startValue": 0,
        "endValue": round(sum(weights), 6),
        "samples": [[numbers[index] for index in stack.frames] for stack in stacks],
        "weights": weights,
    }


def _who(stack: Stack) -> str:
    """`worker 0 (1234) MainThread`, without a semicolon."""
    number = f" {stack.worker}" if stack.worker >= 0 else ""
    thread = f" {clean(stack.thread, 60)}" if stack.thread not in ("", "MainThread") else ""
    return f"{stack.role}{number} ({stack.pid}){thread}".replace(";", ",")


def _frame(place: Place) -> dict[str, Any]:
    made: dict[str, Any] = {"name": place.name}
    if place.file:
        made["file"] = place.file
    if place.line > 0:
        made["line"] = place.line
    return made


def _folded_name(place: Place) -> str:
    line = f":{place.line}" if place.line > 0 else ""
    file = shorten(place.file, _NAME_LIMIT)
    return (place.name + (f" ({file}{line})" if file else "")).replace(";", ",")
