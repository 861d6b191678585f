"""Storage baselines as files: JSON, with a kind and a format number."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.storage import Baseline
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
        InputError: it is no path, its folder is missing, or something else than a file lies there.
    """
    name = checked_name(file)
    folder = os.path.dirname(absolute(name))
    why = special_at(name) or ("a folder" if os.path.isdir(name) else "")
    if why or not os.path.isdir(folder):
        told = f"it is {why}" if why else f"the folder {folder} does not exist"
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
    if document.get("format") != FORMAT:
        raise InputError(
            f"{name!r} has format {document.get('format')!r}; this ioscope reads format {FORMAT}: "
            "save it again"
        )
    try:
        return cast(Baseline, files.decoded(Baseline, document.get("baseline"), "baseline"))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{name!r} is damaged: {error}") from error
