"""Pictures kept as they are after their first resize, in a trial's child and its workers."""

from __future__ import annotations

import functools
import os
import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_HEAD = struct.Struct("<16sII")  # mode, width, height
_MODES = ("1", "L", "RGB", "RGBA", "CMYK", "YCbCr", "I", "F")


@dataclass
class Served:
    """Pictures that were opened, found in the store, and put there, in this process."""

    opened: int = 0
    found: int = 0
    kept: int = 0
    kept_bytes: int = 0


@dataclass(frozen=True)
class PictureStore:
    """`Image.open(file)` ... `.resize(size)` gives the same picture from `folder` after the first
    time. Everything else that needs the full-size picture decodes it as ever."""

    folder: str

    def install(self) -> None:
        from PIL import Image, ImageFile

        if not hasattr(Image.open, "_ioscope_store"):
            _Hooks(self.folder, Image, ImageFile).install()

    def install_counting(self) -> Served:
        """As `install`; the counts of this process."""
        from PIL import Image, ImageFile

        hooks = _Hooks(self.folder, Image, ImageFile)
        hooks.install()
        return hooks.served


class _Hooks:
    def __init__(self, folder: str, image_module: Any, file_module: Any) -> None:
        self.folder, self.module = folder, image_module
        self.kind: Any = image_module.Image
        self.lazy: Any = file_module.ImageFile
        self.served = Served()

    def install(self) -> None:
        kind, original = self.kind, self.module.open
        self.resize, self.thumbnail = kind.resize, kind.thumbnail
        self.convert, self.draft = kind.convert, kind.draft

        @functools.wraps(original)
        def opened(file: Any, *args: Any, **kwargs: Any) -> Any:
            image = original(file, *args, **kwargs)
            self.served.opened += 1
            source = _source(file)
            if source is not None and isinstance(image, self.lazy):
                image._ioscope_source = source
            return image

        opened._ioscope_store = True  # type: ignore[attr-defined]
        self.module.open = opened
        kind.convert = functools.wraps(kind.convert)(self._converted)
        kind.resize = functools.wraps(kind.resize)(self._resized)
        kind.thumbnail = functools.wraps(kind.thumbnail)(self._shrunk)
        self._forget_after_draft()

    # functools.wraps keeps names; these take the image as their first argument, as methods do.
    @property
    def _converted(self) -> Any:
        def convert(image: Any, mode: Any = None, *args: Any, **kwargs: Any) -> Any:
            # A conversion to the mode it has is a copy: of a picture that is not decoded yet, the
            # picture itself does as well.
            if mode == image.mode and not args and not kwargs and _waits(image):
                return image
            return self.convert(image, mode, *args, **kwargs)

        return convert

    @property
    def _resized(self) -> Any:
        def resize(
            image: Any, size: Any, resample: Any = None, box: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            whole = box is None or tuple(box) == (0, 0, *image.size)
            if not _waits(image) or not whole:
                return self.resize(image, size, resample, box, *args, **kwargs)
            path = self._path(image, "resize", tuple(size), resample, args, sorted(kwargs.items()))
            found = self._found(path)
            if found is None:
                found = self.resize(image, size, resample, box, *args, **kwargs)
                self._keep(path, found)
            return found

        return resize

    @property
    def _shrunk(self) -> Any:
        def thumbnail(image: Any, *args: Any, **kwargs: Any) -> None:
            if not _waits(image):
                self.thumbnail(image, *args, **kwargs)
                return
            path = self._path(image, "thumbnail", args, sorted(kwargs.items()))
            found = self._found(path)
            if found is None:
                image._ioscope_source = None  # it resizes itself, inside
                self.thumbnail(image, *args, **kwargs)
                self._keep(path, image)
                return
            image.im, image._size, image.tile, image.readonly = found.im, found.size, [], 0
            image._mode = found.mode

        return thumbnail

    def _forget_after_draft(self) -> None:
        from PIL import JpegImagePlugin

        kind: Any = JpegImagePlugin.JpegImageFile
        original = kind.draft

        @functools.wraps(original)
        def draft(image: Any, *args: Any, **kwargs: Any) -> Any:
            source = getattr(image, "_ioscope_source", None)
            if source is not None:
                image._ioscope_source = f"{source}|{args}{sorted(kwargs.items())}"
            return original(image, *args, **kwargs)

        kind.draft = draft

    def _path(self, image: Any, *what: Any) -> str:
        text = repr((image._ioscope_source, image.mode, image.size, what)).encode(errors="replace")
        return os.path.join(self.folder, blake2b(text, digest_size=16).hexdigest())

    def _found(self, path: str) -> Any:
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        mode, width, height = _HEAD.unpack_from(data)
        self.served.found += 1
        mode = mode.rstrip(b"\0").decode()
        # frombytes copies, so that the picture can be drawn on.
        return self.module.frombytes(mode, (width, height), memoryview(data)[_HEAD.size :])

    def _keep(self, path: str, image: Any) -> None:
        if image.mode not in _MODES or "transparency" in image.info:
            return
        data = _HEAD.pack(image.mode.encode(), *image.size) + image.tobytes()
        part = f"{path}.{os.getpid()}"
        try:
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, path)
        except OSError:
            return  # no room: the picture is decoded again
        self.served.kept += 1
        self.served.kept_bytes += len(data)


def _waits(image: Any) -> bool:
    """Whether the picture comes from a known source and nothing of it was decoded."""
    return bool(getattr(image, "_ioscope_source", None) and image.tile)


def _source(file: Any) -> str | None:
    """What tells this picture's file or bytes from all others; None where nothing does."""
    try:
        if hasattr(file, "getvalue"):
            return blake2b(file.getbuffer(), digest_size=16).hexdigest()
        path = file.name if hasattr(file, "read") else os.fspath(file)
        about = os.stat(path)
    except (AttributeError, TypeError, OSError, ValueError):
        return None
    return repr((os.fsdecode(path), about.st_ino, about.st_size, about.st_mtime_ns))
