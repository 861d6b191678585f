"""Pictures decoded and resized once, and read back at that size."""

from __future__ import annotations

import time
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.counting import seed_all
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._folders import free_bytes, new_folder
from jupyter_ioscope.trials.toggles._look import dataset_length, indices
from jupyter_ioscope.trials.toggles._picture_store import PictureStore
from jupyter_ioscope.units import bytes_text, percent

_ITEMS, _LOOKS = 16, 4  # samples, and how often each is made
_LEAST_FOUND = 0.5  # of the pictures opened, that must come from the store the second time
_PART = 0.5  # of the free bytes for temporary files
_SEEDS = (1, 2)


def refuse(spec: LoaderSpec) -> str:
    if loaded("PIL.Image") is None:
        return "no image is opened with PIL: it is not imported by this program"
    if spec.iterable:
        return "an iterable dataset cannot be asked for the same picture twice, to see what it does"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Whether the first thing that is done with each picture is the same resize each time, and
    what comes out of the store is the same. Runs in a child."""
    drawn, plain = [], []
    until = time.monotonic() + spec.look_s / _LOOKS
    for index in indices(spec, _ITEMS):
        drawn.append(index)
        plain.append(_digest(spec, index, _SEEDS[0]))
        if time.monotonic() > until:
            break
    folder = new_folder(spec, "pictures")
    served = PictureStore(folder).install_counting()
    first = [_digest(spec, index, _SEEDS[0]) for index in drawn]
    opened, found = served.opened, served.found
    again = [_digest(spec, index, _SEEDS[0]) for index in drawn]
    found, opened = served.found - found, served.opened - opened
    # Under another seed a random size or crop would not be found any more.
    before = served.found
    for index in drawn:
        _digest(spec, index, _SEEDS[1])
    return {
        "samples": len(drawn),
        "opened": opened,
        "found": found,
        "found_again": served.found - before,
        "same": plain == first == again,
        "kept_bytes": served.kept_bytes,
        "kept": served.kept,
        "length": dataset_length(spec),
        "free_bytes": free_bytes(folder),
        "folder": folder,
    }


def _digest(spec: LoaderSpec, index: Any, seed: int) -> str:
    seed_all(seed)
    return sample_of(spec.dataset[index]).digest


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_if(_reason(facts), "decode_once")
    return spec.changed(in_child=(*spec.in_child, PictureStore(facts["folder"])))


def _reason(facts: dict[str, Any]) -> str:
    opened, found = facts["opened"], facts["found"]
    if not opened:
        return f"none of the first {facts['samples']} samples opened an image with PIL"
    if facts["kept"] and facts["found_again"] < _LEAST_FOUND * opened:
        return "the size that pictures are resized to, or what is done before, is drawn at random"
    if found < _LEAST_FOUND * opened:
        return (
            f"only {percent(found / opened)} of the pictures are resized before anything else is "
            "done with them: a crop, a turn or a look at pixels needs the full size"
        )
    if not facts["same"]:
        return "samples made of the kept pictures differ from those made of the files"
    wanted = facts["kept_bytes"] / facts["kept"] * max(facts["length"], facts["samples"])
    if wanted > _PART * facts["free_bytes"]:
        return (
            f"all pictures take about {bytes_text(int(wanted))} at that size, more than half of "
            f"the {bytes_text(facts['free_bytes'])} that are free for temporary files"
        )
    return ""


def code(spec: LoaderSpec) -> str:
    return (
        "import numpy as np\n"
        "from PIL import Image\n"
        "\n"
        "\n"
        "def shrink_once(paths, size, target):\n"
        '    """Every picture at the size that the dataset resizes to, in one file."""\n'
        "    shape = (len(paths), size[1], size[0], 3)\n"
        '    small = np.lib.format.open_memmap(target, "w+", np.uint8, shape)\n'
        "    for number, path in enumerate(paths):\n"
        "        with Image.open(path) as img:\n"
        '            small[number] = np.asarray(img.convert("RGB").resize(size))\n'
        "    small.flush()\n"
        "\n"
        "\n"
        "# in the dataset:\n"
        '# self.small = np.load(target, mmap_mode="r")\n'
        "# img = Image.fromarray(self.small[index])  # instead of opening, decoding, resizing"
    )


TOGGLE = Toggle(
    name="decode_once",
    title="Decode and resize once",
    effect="Each picture is decoded and resized once and kept at that size; from then on it is "
    "read back. What is timed is a later epoch, when every picture is there.",
    cost="Disk space for the small pictures, uncompressed; the first epoch writes them. Only where "
    "the resize comes first and is the same each time: random crops need the full picture.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=62,
    saves=("image_decode", "image_resize", "image_open"),
)
