"""What decoders take for a few of the user's own pictures, timed in a process of its own.

The kernel imports no decoder for it, and a picture that a decoder dies of takes only that process
along.
"""

from __future__ import annotations

import functools
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jupyter_ioscope.debugger import undebugged
from jupyter_ioscope.optional import installed
from jupyter_ioscope.trials.toggles._jpeg_swap import DECODERS

SCALES = (1, 2, 4, 8)  # of JPEG's own decoding at reduced size
_MOST = 8  # pictures
_ROUNDS = 2  # of which the quickest counts
_MOST_BYTES = 8 << 20  # of one file
_BUDGET_S = 0.5  # of timing; then no further picture is taken
_WAIT_S = 6.0  # for the process, its start included
_CODE = (
    "import os, sys; sys.path[:] = sys.argv[1].split(os.pathsep)\n"
    "from jupyter_ioscope.trials.decode_times import main; main()"
)
PIL, KEPT = "PIL", "kept"
_PACKAGES = {"cv2": "cv2", "simplejpeg": "simplejpeg"}  # torchvision takes seconds to import


class DecodeTimes(NamedTuple):
    """Seconds of CPU for the same pictures, one number a picture.

    `decode` and `resize` are by decoder and scale: making the pixels, and bringing them to the size
    that the batch holds. The decoder "kept" reads back what was decoded and resized before.
    """

    sizes: tuple[tuple[int, int], ...]
    decode: dict[str, dict[int, tuple[float, ...]]]
    resize: dict[int, tuple[float, ...]]


def decode_times(paths: tuple[str, ...], side: int) -> DecodeTimes | None:
    """Times for JPEG files that are resized to about `side` x `side`; None where nothing could be
    timed. The answer is kept for the next one who asks."""
    found = tuple(path for path in paths if os.path.isfile(path))[:_MOST]
    return _asked(found, side) if found and sys.executable else None


@functools.lru_cache(maxsize=4)
def _asked(paths: tuple[str, ...], side: int) -> DecodeTimes | None:
    request = json.dumps({"paths": paths, "side": side}).encode()
    command = [sys.executable, "-c", _CODE, os.pathsep.join(sys.path)]
    try:
        with undebugged():
            done = subprocess.run(
                command, input=request, capture_output=True, timeout=_WAIT_S, start_new_session=True
            )
        told = json.loads(done.stdout.splitlines()[-1])
        return _times(told["rows"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None


def _times(rows: list[dict[str, Any]]) -> DecodeTimes | None:
    if not rows:
        return None
    names = set.intersection(*(set(row["decode"]) for row in rows))
    decode = {
        name: {
            scale: tuple(float(row["decode"][name][str(scale)]) for row in rows)
            for scale in SCALES
            if all(str(scale) in row["decode"][name] for row in rows)
        }
        for name in names
    }
    resize = {scale: tuple(float(row["resize"][str(scale)]) for row in rows) for scale in SCALES}
    return DecodeTimes(tuple((row["width"], row["height"]) for row in rows), decode, resize)


def main() -> None:
    """Entry of the process: a request on stdin, the answer as the last line on stdout."""
    request = json.loads(sys.stdin.buffer.read())
    rows = list(_rows(request["paths"], int(request["side"])))
    sys.stdout.write("\n" + json.dumps({"rows": rows}) + "\n")


def _rows(paths: list[str], side: int) -> Iterator[dict[str, Any]]:
    decoders = {name: DECODERS[name]() for name, package in _PACKAGES.items() if installed(package)}
    until = time.monotonic() + _BUDGET_S
    for path in paths:
        try:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
            if data[:2] == b"\xff\xd8" and len(data) <= _MOST_BYTES:
                yield _row(data, side, decoders)
        except Exception:
            continue  # a damaged picture, or a file that is gone; the others tell
        if time.monotonic() > until:
            return


def _row(data: bytes, side: int, decoders: dict[str, Any]) -> dict[str, Any]:
    from PIL import Image

    pictures = {scale: _by_pil(data, scale) for scale in SCALES}
    size = pictures[1].size
    small = pictures[1].convert("RGB").resize((side, side), Image.Resampling.BILINEAR).tobytes()
    decode: dict[str, dict[int, float]] = {
        PIL: {scale: _seconds(_by_pil, data, scale) for scale in SCALES},
        KEPT: dict.fromkeys(SCALES, _seconds(lambda: Image.frombytes("RGB", (side, side), small))),
    }
    for name, other in decoders.items():
        decode[name] = {scale: _seconds(_by_other, other, data, scale) for scale in SCALES}
    resize = {
        scale: _seconds(picture.resize, (side, side), Image.Resampling.BILINEAR)
        for scale, picture in pictures.items()
    }
    return {"width": size[0], "height": size[1], "decode": decode, "resize": resize}


def _by_pil(data: bytes, scale: int) -> Any:
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    if scale > 1:
        picture.draft("RGB", (picture.width // scale, picture.height // scale))
    picture.load()
    return picture


def _by_other(decode: Callable[[bytes, int], Any], data: bytes, scale: int) -> Any:
    """As `JpegSwap` does it."""
    from PIL import Image

    return Image.fromarray(decode(data, scale))


def _seconds(act: Callable[..., Any], *arguments: Any) -> float:
    """CPU of the quickest of a few rounds."""
    found = []
    for _ in range(_ROUNDS):
        before = time.process_time()
        act(*arguments)
        found.append(time.process_time() - before)
    return min(found)
