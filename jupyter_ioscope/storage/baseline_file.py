"""Storage baselines as files: JSON, with a kind and a format number."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from typing import cast

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.storage import Baseline, JobResult
from jupyter_ioscope.paths import absolute, path_text, special_at

KIND, FORMAT = "ioscope storage baseline", 1


def checked_name(file: object) -> str:
    """The path of a baseline's file as text.

    Raises:
        InputError: it is no path.
    """
    return path_text(file, "file", "the path of the baseline's file")


def checked_target(file: object) -> str:
    """Where a baseline can be written, as text: to be asked before it is measured.

    Raises:
        InputError: it is no path, its folder is missing or takes no files, or something else than
            a file lies there.
    """
    name = checked_name(file)
    folder = os.path.dirname(absolute(name))
    why = special_at(name) or ("a folder" if os.path.isdir(name) else "")
    told = f"it is {why}" if why else ""
    if not told and not os.path.isdir(folder):
        told = f"the folder {folder!r} does not exist"
    elif not told and not os.access(folder, os.W_OK | os.X_OK):
        told = f"nothing may be written into the folder {folder!r} (no permission, or read-only)"
    if told:
        raise InputError(f"the baseline cannot be written to {name!r}: {told}")
    return name


def write(baseline: Baseline, file: str | os.PathLike[str]) -> None:
    """Write a baseline. The file appears whole or not at all.

    Raises:
        InputError: it cannot be written there.
    """
    name = checked_target(file)
    document = {"kind": KIND, "format": FORMAT, "baseline": files.encoded(baseline)}
    raw = json.dumps(document, indent=1, allow_nan=False).encode()
    try:
        files.write_whole(Path(name), raw)
    except OSError as error:
        raise InputError(
            f"the baseline cannot be written to {name!r}: {error.strerror or error}"
        ) from error


def read(file: str | os.PathLike[str]) -> Baseline:
    """Read a baseline back.

    Raises:
        InputError: there is none, or it is foreign, damaged or of another format.
    """
    name = checked_name(file)
    if what := special_at(name):
        raise InputError(f"{name!r} is {what}: give the path of a saved baseline")
    try:
        document = json.loads(Path(name).read_bytes())
    except FileNotFoundError:
        raise InputError(f"there is no baseline {name!r}: save one first") from None
    except OSError as error:
        raise InputError(f"{name!r} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name!r} is damaged or no baseline: it is not complete JSON") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(f"{name!r} is no storage baseline: it does not say it is one")
    if type(document.get("format")) is not int or document["format"] != FORMAT:
        raise InputError(
            f"{name!r} has format {document.get('format')!r}; this ioscope reads format {FORMAT}: "
            "save it again"
        )
    try:
        found = cast(Baseline, files.decoded(Baseline, document.get("baseline"), "baseline"))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{name!r} is damaged: {error}") from error
    for job in found.jobs:
        if not _possible(job):  # nothing compares as worse than a number that is none
            raise InputError(f"{name!r} is damaged: {job.pattern} with {job.engine} has impossible "
                             "numbers")  # fmt: skip
    return found


def _possible(job: JobResult) -> bool:
    speeds = (0.0, job.bytes_per_s_low, job.bytes_per_s, job.bytes_per_s_high)
    late = (0.0, job.p99_low_s, job.p99_s, job.p99_high_s)
    numbers = (*speeds, *late, job.requests_per_s, job.p50_s)
    counts = (job.block_bytes, job.depth, job.repeats)
    return (
        all(math.isfinite(number) and number >= 0 for number in numbers)
        and all(one <= other for row in (speeds, late) for one, other in itertools.pairwise(row))
        and min(counts) >= 1
    )
