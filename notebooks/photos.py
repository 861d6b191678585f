"""Makes a folder of real JPEG photographs to load, once, and keeps it.

The photographs are cut from those that scikit-image and scikit-learn carry in their wheels, so
nothing is downloaded: every file is a different crop, mirrored or not, mildly resized, and encoded
at a quality that cameras and web sites use. Folders are classes, as ImageFolder expects.

    python photos.py                 # makes them, prints the folder
    python photos.py --count 500     # a smaller set
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

MADE_BY = "ioscope notebooks/photos.py"
VERSION = 1  # raise it when the pictures change: every version has a folder of its own
SEED = 20240
DEFAULT_COUNT = 2400
MAX_ENLARGEMENT = 2.0  # beyond that a picture holds no more detail than a smaller one
LONG_SIDE_PIXELS = (720, 1600)
CROP_FRACTION = (0.55, 0.95)  # of each side of the photograph
JPEG_QUALITY = (78, 93)

# file in skimage/data -> class
SCIKIT_IMAGE = {
    "astronaut.png": "portrait",
    "chelsea.png": "cat",
    "coffee.png": "coffee",
    "rocket.jpg": "rocket",
    "hubble_deep_field.jpg": "galaxies",
    "retina.jpg": "retina",
    "motorcycle_left.png": "motorcycle",
    "motorcycle_right.png": "motorcycle",
}
# file in sklearn/datasets/images -> class
SCIKIT_LEARN = {"china.jpg": "temple", "flower.jpg": "flower"}


class Picture(NamedTuple):
    """One file that was written."""

    file: str
    width: int
    height: int
    size_bytes: int
    sha256: str


def photo_folder(folder: str | Path | None = None, count: int | None = None) -> Path:
    """The folder that holds the photographs; makes it if it is not there.

    Without `folder` they lie in the user's cache. Without `count`, the environment variable
    IOSCOPE_PHOTOS says how many, else `DEFAULT_COUNT`.
    """
    count = count or chosen_count()
    target = Path(folder) if folder else default_folder(count)
    if not complete(target, count):
        # as a program of its own: its processes then start the same from any notebook or script
        command = [sys.executable, __file__, str(target), "--count", str(count)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target


def chosen_count() -> int:
    return int(os.environ.get("IOSCOPE_PHOTOS", DEFAULT_COUNT))


def default_folder(count: int) -> Path:
    """Where the photographs are kept between runs (XDG_CACHE_HOME, else ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "ioscope" / "photos" / f"v{VERSION}-{count}"


def complete(folder: Path, count: int) -> bool:
    """Whether `folder` holds this version's `count` photographs, each with the size it had."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        pictures = [Picture(*row) for row in manifest["pictures"]]
        right_set = (manifest["version"], len(pictures)) == (VERSION, count)
        return right_set and all(
            (folder / picture.file).stat().st_size == picture.size_bytes for picture in pictures
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build(target: Path, count: int) -> None:
    """Write `count` photographs beside `target`, then put them in place in one step, so that
    a folder that can be seen is a folder that is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name in sorted({*SCIKIT_IMAGE.values(), *SCIKIT_LEARN.values()}):
            (building / name).mkdir()
        with ProcessPoolExecutor(
            max_workers=min(8, os.cpu_count() or 1),
            mp_context=multiprocessing.get_context("spawn"),
        ) as pool:
            pictures = list(pool.map(partial(make, building), range(count), chunksize=40))
        (building / "manifest.json").write_text(json.dumps(manifest(pictures)))
        put_in_place(building, target, count)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def put_in_place(building: Path, target: Path, count: int) -> None:
    """Rename, unless somebody else finished the same set first; a broken set is replaced."""
    if complete(target, count):
        return
    if target.exists() and not (ours(target) or not any(target.iterdir())):
        raise FileExistsError(f"{target} holds other files: give an empty or a new folder")
    shutil.rmtree(target, ignore_errors=True)
    building.chmod(0o755)  # mkdtemp made it private
    building.rename(target)


def ours(folder: Path) -> bool:
    """Whether an earlier run made `folder`, so that it may be replaced."""
    try:
        return bool(json.loads((folder / "manifest.json").read_text())["made_by"] == MADE_BY)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def manifest(pictures: Iterable[Picture]) -> dict[str, Any]:
    """What was made: enough to check the folder later."""
    return {
        "made_by": MADE_BY,
        "version": VERSION,
        "seed": SEED,
        "pictures": [list(p) for p in pictures],
    }


def make(folder: Path, number: int) -> Picture:
    """Cut, resize, encode and write photograph `number`. The number alone decides what it shows."""
    rng = random.Random(SEED * 1_000_003 + number)
    name, photograph = photographs()[number % len(photographs())]
    crop = cut(photograph, rng)
    encoded = io.BytesIO()
    crop.save(encoded, "JPEG", quality=rng.randint(*JPEG_QUALITY))
    content = encoded.getvalue()
    file = f"{name}/{name}_{number:05d}.jpg"
    (folder / file).write_bytes(content)
    return Picture(file, *crop.size, len(content), hashlib.sha256(content).hexdigest())


def cut(photograph: Image.Image, rng: random.Random) -> Image.Image:
    """A random part of the photograph, mirrored half of the time, at a camera-like size."""
    width, height = (round(side * rng.uniform(*CROP_FRACTION)) for side in photograph.size)
    left = rng.randint(0, photograph.width - width)
    top = rng.randint(0, photograph.height - height)
    part = photograph.crop((left, top, left + width, top + height))
    if rng.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    wanted = math.exp(rng.uniform(*map(math.log, LONG_SIDE_PIXELS))) / max(part.size)
    scale = min(wanted, MAX_ENLARGEMENT)
    return part.resize(
        (round(part.width * scale), round(part.height * scale)), Image.Resampling.BICUBIC
    )


@cache
def photographs() -> list[tuple[str, Image.Image]]:
    """(class, photograph) of every source, decoded once a process."""
    from importlib.util import find_spec

    found = []
    for package, inside, names in (
        ("skimage", "data", SCIKIT_IMAGE),
        ("sklearn", "datasets/images", SCIKIT_LEARN),
    ):
        spec = find_spec(package)  # finds the files without importing scipy
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("pip install 'jupyter-ioscope[demo]'", name=package)
        for file, name in names.items():
            path = Path(spec.origin).parent / inside / file
            found.append((name, Image.open(path).convert("RGB")))
    return found


def summary(folder: Path) -> str:
    """What lies in the folder, in one line."""
    pictures = [
        Picture(*row) for row in json.loads((folder / "manifest.json").read_text())["pictures"]
    ]
    sides = sorted(max(p.width, p.height) for p in pictures)
    size_mb = sum(p.size_bytes for p in pictures) / 1e6
    distinct = len(Counter(p.sha256 for p in pictures))
    return (
        f"{len(pictures):,} photographs, {distinct:,} distinct, {size_mb:.0f} MB, "
        f"long side {sides[0]}-{sides[-1]} px"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", nargs="?", help="default: the user's cache")
    parser.add_argument("--count", type=int, help=f"how many (default {DEFAULT_COUNT})")
    arguments = parser.parse_args()
    count = arguments.count or chosen_count()
    folder = Path(arguments.folder) if arguments.folder else default_folder(count)
    if not complete(folder, count):
        build(folder, count)
    print(folder)
    print(summary(folder))


if __name__ == "__main__":
    main()
