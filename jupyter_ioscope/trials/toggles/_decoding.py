"""What the toggles share that let another library decode JPEGs."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import raise_if
from jupyter_ioscope.trials.toggles import draft_decode
from jupyter_ioscope.trials.toggles._jpeg_swap import JpegSwap
from jupyter_ioscope.trials.toggles._pil_draft import patch_for

DECIDES = draft_decode.DECIDES


def refusal(spec: LoaderSpec, missing: str) -> str:
    """`missing`: what to install, where nothing is there to decode with."""
    if loaded("PIL.Image") is None:
        return "no image is opened with PIL: it is not imported by this program"
    return missing


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """What the dataset does first with each JPEG. Runs in a child."""
    return draft_decode.learn(spec)


def swapped(spec: LoaderSpec, facts: dict[str, Any], name: str, library: str) -> LoaderSpec:
    """`spec` with the other decoder: at reduced size where the picture is resized first, else at
    full size.

    Raises:
        TrialError: no JPEG is decoded.
    """
    reason = ""
    if not facts["images"]:
        reason = f"none of the first {facts['samples']} samples opened an image with PIL"
    elif not facts["jpegs"]:
        reason = f"none of the {facts['images']} images opened by the first samples is a JPEG"
    elif not facts["tracks"]:
        reason = "the JPEGs that are opened are never decoded"
    raise_if(reason, name)
    try:
        draft = patch_for(facts)
    except TrialError:
        return spec.changed(in_child=(*spec.in_child, JpegSwap(library)))
    change = JpegSwap(library, draft.width, draft.height)
    return spec.changed(in_child=(*spec.in_child, change))


def change_of(spec: LoaderSpec) -> JpegSwap | None:
    """The decoder that a spec has been given."""
    return next((one for one in spec.in_child if isinstance(one, JpegSwap)), None)
