"""Storage baselines as files: JSON, with a kind and a format number."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.storage import Baseline

KIND, FORMAT = "ioscope storage baseline", 1


def write(baseline: Baseline, file: str | os.PathLike[str]) -> None:
    """Write a baseline. The file appears whole or not at all.

    Raises:
        InputError: it cannot be written there.
    """
    document = {"kind": KIND, "format": FORMAT, "baseline": files.encoded(baseline)}
    raw = json.dumps(document, indent=1, allow_nan=False).encode()
    try:
        files.write_whole(Path(file), raw)
    except OSError as error:
        raise InputError(
            f"the baseline cannot be written to {os.fspath(file)!r}: {error.strerror or error}"
        ) from error


def read(file: str | os.PathLike[str]) -> Baseline:
    """Read a baseline back.

    Raises:
        InputError: there is none, or it is foreign, damaged or of another format.
    """
    name = os.fspath(file)
    try:
        document = json.loads(Path(file).read_bytes())
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
