"""Decode JPEGs at the size they are needed (PIL's draft mode)."""

from __future__ import annotations

import time
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._pil_draft import DraftDecode, patch_for
from jupyter_ioscope.trials.toggles._pil_watch import PilWatch

# Images of the first samples that are watched; a constant target shows in far fewer.
_IMAGES = 48
_BATCHES = 8
DECIDES = "how JPEGs are decoded"


def refuse(spec: LoaderSpec) -> str:
    if loaded("PIL.Image") is None:
        return "no image is opened with PIL: it is not imported by this program"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """What the dataset does first with each JPEG it opens. Runs in a child: PIL stays patched."""
    until = time.monotonic() + spec.look_s
    watch = PilWatch()
    watch.install()
    samples = 0
    alone = spec.changed(num_workers=0, prefetch_factor=None, persistent_workers=False)
    for batches, _ in enumerate(build(alone), 1):
        samples += spec.batch_size or 1
        enough = batches >= _BATCHES or len(watch.tracks) >= _IMAGES
        if enough or time.monotonic() > until:
            break
    decided = [track for track in watch.tracks if track.first]
    return {
        "samples": samples,
        "images": len(watch.tracks) + watch.others,
        "jpegs": len(watch.tracks),
        "tracks": [
            {"first": t.first, "source": t.source, "target": t.target, "boxed": t.boxed}
            for t in decided
        ],
    }


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Without facts about the pictures no size is known; `apply_learnt` adds the patch.
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    return spec.changed(in_child=(*spec.in_child, patch_for(facts)))


def code(spec: LoaderSpec) -> str:
    for change in spec.in_child:
        if isinstance(change, DraftDecode):
            return change.code()
    return (
        "# in the dataset, right after the image is opened:\n"
        "img = Image.open(path)\n"
        'img.draft("RGB", (width, height))  # the size that it is resized to'
    )


TOGGLE = Toggle(
    name="draft_decode",
    title="Decode JPEGs smaller (draft mode)",
    effect="Lets the JPEG decoder scale by 1/2, 1/4 or 1/8 while it decodes, never below the size "
    "that the picture is resized to afterwards.",
    cost="Pixel values change a little, because part of the scaling is done by the decoder; the "
    "same-data check says by how much.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=60,
    saves=("image_decode", "image_resize"),
    decides=DECIDES,
)
