"""JPEGs decoded by simplejpeg or torchvision, which use libjpeg-turbo at its fastest."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.optional import installed
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles import _decoding

_LIBRARIES = ("simplejpeg", "torchvision")


def refuse(spec: LoaderSpec) -> str:
    missing = (
        ""
        if _library()
        else "neither simplejpeg nor torchvision is installed: pip install simplejpeg"
    )
    return _decoding.refusal(spec, missing)


def _library() -> str:
    return next((name for name in _LIBRARIES if installed(name)), "")


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    return _decoding.swapped(spec, facts, TOGGLE.name, _library())


def code(spec: LoaderSpec) -> str:
    change = _decoding.change_of(spec)
    if (change.library if change is not None else _library()) == "torchvision":
        return (
            "from torchvision.io import ImageReadMode, decode_jpeg, read_file\n\n"
            "# in the dataset, instead of Image.open(path).convert('RGB'); 3 x height x width:\n"
            "tensor = decode_jpeg(read_file(path), mode=ImageReadMode.RGB)"
        )
    least = ""
    if change is not None and change.width:
        least = f"\n        min_width={change.width}, min_height={change.height},"
    return (
        "import simplejpeg\n\n"
        "# in the dataset, instead of Image.open(path).convert('RGB'):\n"
        'with open(path, "rb") as file:\n'
        "    array = simplejpeg.decode_jpeg(\n"
        f'        file.read(), "RGB", fastdct=True, fastupsample=True,{least}\n'
        "    )\n"
        "img = Image.fromarray(array)  # or go on with the array"
    )


TOGGLE = Toggle(
    name="fast_decode",
    title="Decode JPEGs with simplejpeg",
    effect="simplejpeg (or torchvision) makes the pixels instead of PIL's decoder, with the quick "
    "versions of its steps; simplejpeg at reduced size where the picture is resized first.",
    cost="Pixel values change a little, because quick steps round otherwise; the same-data check "
    "says by how much.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=_decoding.learn,
    apply_learnt=apply_learnt,
    order=61,
    saves=("image_decode", "image_resize"),
    decides=_decoding.DECIDES,
)
