"""Image decoders on the user's own images, with what their pixels differ by."""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

from jupyter_ioscope.benches._bench import Arm, Bench, Found, Missing, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import file_of, is_path, path_of, really
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.optional import installed, need
from jupyter_ioscope.units import bytes_text, significant

_TAKES = "the path of a picture or of a folder of pictures, or a list of such paths"
_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".avif")
_MOST, _MOST_BYTES = 48, 48 << 20
_LOOKED = 100_000  # files of a folder that are looked at
_TOLD = 3

Decode = Callable[[bytes], Any]  # -> array height x width x 3, unsigned bytes, RGB


def prepare(target: Any, folder: str) -> Prepared:
    need("PIL.Image", "the bench of image decoders")
    need("numpy", "the bench of image decoders")
    pictures, left_out = _read(_paths(target))
    jpegs = [data for data in pictures if data[:2] == b"\xff\xd8"]
    arms: list[Arm] = []
    missing: list[Missing] = []
    for name, (package, make, only_jpeg) in DECODERS.items():
        group = "only the JPEGs" if len(jpegs) < len(pictures) else ""
        wanted = jpegs if only_jpeg else pictures
        if not installed(package):
            missing.append(
                Missing(name, f"not installed: pip install {_PIP.get(package, package)}")
            )
        elif not wanted:
            missing.append(Missing(name, "decodes JPEG only, and none of the pictures is one"))
        elif only_jpeg and group:
            if not any(arm.group == group for arm in arms):
                arms.append(_arm("PIL", _pil, jpegs, group, reference=True))
            arms.append(_arm(name, make, jpegs, group))
        else:
            arms.append(_arm(name, make, wanted, "", reference=name == "PIL"))
    arms.sort(key=lambda arm: arm.group)
    total = sum(map(len, pictures))
    notes = [f"{len(pictures)} pictures of {bytes_text(total)} were decoded from memory to RGB.",
             "Each decoder used one thread, as a worker does.", *left_out]  # fmt: skip
    about = [_about(data) for data in pictures]
    if turned := sum(is_turned for _, is_turned in about):
        notes.append(f"{turned} of them carry an orientation (EXIF), which PIL leaves alone.")
    if deep := sum(mode.startswith("I") for mode, _ in about):
        notes.append(f"{deep} of them hold more than 8 bits a channel: PIL's convert('RGB') cuts "
                     "off what is above 255, and decoders that scale differ from it.")  # fmt: skip

    def sentences(_found: Found) -> Sequence[str]:
        return notes

    name = os.fspath(target) if is_path(target) else f"{len(pictures)} pictures"
    return Prepared(str(name), tuple(arms), tuple(missing), sentences=sentences, code=_code)


def _arm(name: str, make: Callable[[], Decode], pictures: list[bytes], group: str,
         reference: bool = False) -> Arm:  # fmt: skip
    look = None if reference else functools.partial(differences, make, pictures)
    return Arm(name, functools.partial(_open, make, pictures), len(pictures), look=look,
               bytes=sum(map(len, pictures)), group=group)  # fmt: skip


def _open(make: Callable[[], Decode], pictures: list[bytes]) -> Pass:
    decode = make()

    def once() -> None:
        for data in pictures:
            decode(data)

    return once


def _paths(target: Any) -> list[str]:
    """Paths of pictures, evenly from the whole folder.

    Raises:
        InputError: there are none.
    """
    if isinstance(target, (list, tuple)):
        if not target:
            raise InputError(f"target is empty: give {_TAKES}")
        return [file_of(item, _TAKES)[0] for item in target[:_MOST]]
    path = path_of(target, _TAKES)
    if not os.path.isdir(path):
        return [file_of(target, _TAKES)[0]]
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        found += [os.path.join(folder, n) for n in sorted(names) if n.lower().endswith(_KINDS)]
        if len(found) >= _LOOKED:
            break
    if not found:
        raise InputError(f"{path!r} holds no pictures ({', '.join(_KINDS)}): give {_TAKES}")
    step = max(1, len(found) // _MOST)
    return found[::step][:_MOST]


def _read(paths: list[str]) -> tuple[list[bytes], list[str]]:
    """(contents that PIL decodes, what to say of the others).

    Raises:
        InputError: PIL decodes none.
    """
    decode, found, bad, size = _pil(), [], [], 0
    for path in paths:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        try:
            decode(data)
        except Exception as error:
            unknown = type(error).__name__ == "UnidentifiedImageError"  # its text is an address
            why = "PIL knows no such format" if unknown else short(error)
            bad.append(f"{path!r} is left out: {why}; it begins like {really(path)}")
            continue
        found.append(data)
        size += len(data)
        if size > _MOST_BYTES:
            break
    if not found:
        raise InputError(f"PIL decodes none of the {len(paths)} files: {bad[0]}")
    more = [f"and {len(bad) - _TOLD} more are left out"] if len(bad) > _TOLD else []
    return found, bad[:_TOLD] + more


def differences(make: Callable[[], Decode], pictures: Sequence[bytes]) -> list[str]:
    """How the pixels differ from PIL's: refusals, other sizes, channels and types, the mean and the
    largest step."""
    import numpy

    standard, decode = _pil(), make()
    means, largest, refused = [], 0, []
    other: collections.Counter[str] = collections.Counter()
    for data in pictures:
        want = standard(data)
        try:
            have = numpy.asarray(decode(data))
        except Exception as error:
            refused.append(short(error))
            continue
        if text := _other_form(have, want):
            other[text] += 1
            continue
        step = numpy.abs(have.astype(numpy.int16) - want)
        means.append(float(step.mean()))
        largest = max(largest, int(step.max(initial=0)))
    found = []
    if refused:
        found.append(f"refuses {len(refused)} of {len(pictures)} pictures ({refused[0][:120]})")
    found += [f"{count} of {len(pictures)} come {text}" for text, count in other.items()]
    if largest:
        mean = significant(sum(means) / len(means), 2)
        found.append(f"pixels differ by {mean} of 255 on average, by {largest} at most")
    return found


def _other_form(have: Any, want: Any) -> str:
    if have.shape[:2] != want.shape[:2]:
        return "in another size or turned"
    if have.shape != want.shape:
        return f"with {have.shape[2] if have.ndim > 2 else 1} channels instead of {want.shape[2]}"
    return f"as {have.dtype}" if have.dtype != want.dtype else ""


def _about(data: bytes) -> tuple[str, bool]:
    """(PIL's mode of a picture, whether it carries an orientation)."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        turned = 1
        with contextlib.suppress(Exception):  # damaged metadata of a picture that decodes
            turned = image.getexif().get(0x0112, 1)
        return image.mode, turned not in (0, 1)


def _pil() -> Decode:
    import numpy
    from PIL import Image

    def decode(data: bytes) -> Any:
        with Image.open(io.BytesIO(data)) as image:
            return numpy.asarray(image.convert("RGB"))

    return decode


def _pil_half() -> Decode:
    import numpy
    from PIL import Image

    def decode(data: bytes) -> Any:
        with Image.open(io.BytesIO(data)) as image:
            image.draft("RGB", (image.width // 2, image.height // 2))
            return numpy.asarray(image.convert("RGB"))

    return decode


def _opencv(flags: int = 0) -> Decode:
    import numpy

    cv2: Any = need("cv2", "decoding with OpenCV")
    cv2.setNumThreads(1)

    def decode(data: bytes) -> Any:
        array = cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR | flags)
        if array is None:
            raise ValueError("OpenCV gives nothing for it")
        return cv2.cvtColor(array, cv2.COLOR_BGR2RGB)

    return decode


def _simplejpeg(fast: bool) -> Decode:
    library: Any = need("simplejpeg", "decoding with simplejpeg")

    def decode(data: bytes) -> Any:
        return library.decode_jpeg(data, "RGB", fastdct=fast, fastupsample=fast)

    return decode


def _torchvision() -> Decode:
    import torch

    library: Any = need("torchvision.io", "decoding with torchvision")
    torch.set_num_threads(1)

    def decode(data: bytes) -> Any:
        packed = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        image = library.decode_image(packed, mode=library.ImageReadMode.RGB)
        return image.permute(1, 2, 0).contiguous().numpy()

    return decode


def _imageio() -> Decode:
    library: Any = need("imageio.v3", "decoding with imageio")

    def decode(data: bytes) -> Any:
        return library.imread(data)

    return decode


_PIP = {"cv2": "opencv-python-headless", "PIL": "pillow"}
# name -> (package, decoder, whether it is for JPEG only)
DECODERS: dict[str, tuple[str, Callable[[], Decode], bool]] = {
    "PIL": ("PIL", _pil, False),
    "PIL, draft at half size": ("PIL", _pil_half, True),
    "OpenCV": ("cv2", _opencv, False),
    "simplejpeg": ("simplejpeg", functools.partial(_simplejpeg, False), True),
    "simplejpeg, fast": ("simplejpeg", functools.partial(_simplejpeg, True), True),
    "torchvision": ("torchvision", _torchvision, False),
    "imageio": ("imageio", _imageio, False),
}


def _code(arm: Arm) -> str:
    return {
        "OpenCV": "array = cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), "
        "cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)",
        "simplejpeg": 'array = simplejpeg.decode_jpeg(data, "RGB")',
        "torchvision": "tensor = torchvision.io.decode_image(packed, "
        "mode=torchvision.io.ImageReadMode.RGB)",
    }.get(arm.name, "")


BENCH = Bench("images", "Image decoders", _TAKES, "picture", prepare)
