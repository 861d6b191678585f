"""JPEGs decoded by OpenCV, at reduced size where the picture is resized anyway."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.optional import installed
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _decoding


def refuse(spec: LoaderSpec) -> str:
    missing = (
        "" if installed("cv2") else "OpenCV is not installed: pip install opencv-python-headless"
    )
    return _decoding.refusal(spec, missing)


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    return _decoding.swapped(spec, facts, TOGGLE.name, "cv2")


def code(spec: LoaderSpec) -> str:
    change = _decoding.change_of(spec)
    reduced = change is None or bool(change.width)
    flag = "cv2.IMREAD_REDUCED_COLOR_2" if reduced else "cv2.IMREAD_COLOR"
    size = f", never below {change.scale_text}" if change is not None and change.width else ""
    lines = [
        "import cv2",
        "",
        "cv2.setNumThreads(1)  # the workers are the threads",
        "",
        "# in the dataset, instead of Image.open(path).convert('RGB'):",
        *([f"# _2, _4 or _8: the strongest that suits the picture{size}"] if reduced else []),
        f"array = cv2.imread(path, {flag} | cv2.IMREAD_IGNORE_ORIENTATION)",
        "array = cv2.cvtColor(array, cv2.COLOR_BGR2RGB)  # OpenCV gives blue first",
        "img = Image.fromarray(array)  # or go on with the array",
    ]
    return "\n".join(lines)


TOGGLE = Toggle(
    name="opencv_decode",
    title="Decode JPEGs with OpenCV",
    effect="cv2.imdecode makes the pixels instead of PIL's decoder; where the picture is resized "
    "first, at 1/2, 1/4 or 1/8 of its size, never below the size wanted.",
    cost="Pixel values may change a little; the same-data check says by how much. Colours come in "
    "another order (BGR) from cv2 itself. A damaged file may give a damaged picture, not an error.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=_decoding.learn,
    apply_learnt=apply_learnt,
    order=61,
    saves=("image_decode", "image_resize"),
    decides=_decoding.DECIDES,
)
