"""Files that are read in tiny pieces without a buffer get one."""

from __future__ import annotations

import builtins
import functools
import io
import os
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._open_swap import install_open
from jupyter_ioscope.units import bytes_text, significant

_BUFFER_BYTES = 64 * 1024
_SMALL_BUFFER = 4096  # a buffer set below this is meant as none
_FEW_READS = 4.0  # system calls an open file, below which a buffer saves nothing


@dataclass(frozen=True)
class BufferedOpen:
    """`open(path, "rb", buffering=0)` (or a tiny buffer) gives a file with a buffer."""

    size_bytes: int = _BUFFER_BYTES

    def install(self) -> None:
        if not _installed:
            _installed.append(self)
            install_open(self._opened)

    def _opened(self, path: str, mode: str, buffering: int) -> Any:
        if not 0 <= buffering < _SMALL_BUFFER or (buffering == 1 and "b" not in mode):
            return None
        try:
            return io.BufferedReader(io.FileIO(path), self.size_bytes)
        except OSError:
            return None  # the program gets its error from its own call


_installed: list[BufferedOpen] = []


class _Counting(io.FileIO):
    """A file without a buffer that counts its reads."""

    calls = 0
    read_bytes = 0

    def _noted(self, amount: int) -> None:
        _Counting.calls += 1
        _Counting.read_bytes += amount

    def readinto(self, buffer: Any) -> Any:
        amount = super().readinto(buffer)
        self._noted(amount or 0)
        return amount

    def read(self, size: int | None = -1) -> Any:
        data = super().read(-1 if size is None else size)
        self._noted(len(data or b""))
        return data

    # FileIO takes lines byte by byte.
    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(-1 if size is None else size)
        return line


def refuse(spec: LoaderSpec) -> str:
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """How files without a buffer are opened and read while samples are made. Runs in a child."""
    original = builtins.open
    counts = {"opens": 0, "unbuffered": 0}

    @functools.wraps(original)
    def noted(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        if set(mode) <= set("rbt") and not isinstance(file, int):
            counts["opens"] += 1
            if 0 <= buffering < _SMALL_BUFFER and "b" in mode and not args and not kwargs:
                counts["unbuffered"] += 1
                raw = _Counting(os.fspath(file))
                return raw if buffering == 0 else io.BufferedReader(raw, max(1, buffering))
        return original(file, mode, buffering, *args, **kwargs)

    builtins.open = io.open = noted
    samples = look(spec).samples
    return counts | {
        "samples": samples,
        "reads": _Counting.calls,
        "read_bytes": _Counting.read_bytes,
    }


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(in_child=(*spec.in_child, BufferedOpen()))


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    reason = ""
    if not facts["unbuffered"]:
        reason = (
            f"none of the {facts['opens']} files that the first {facts['samples']} samples opened "
            "goes without a buffer (files that were open before cannot be changed here)"
        )
    elif facts["reads"] / facts["unbuffered"] < _FEW_READS:
        each = significant(facts["reads"] / facts["unbuffered"], 2)
        mean = bytes_text(facts["read_bytes"] // max(1, facts["reads"]))
        reason = (
            f"the files without a buffer are read in {each} calls each, of {mean} on average: "
            "there is nothing to gather"
        )
    raise_if(reason, "buffered_open")
    return apply(spec)


def code(spec: LoaderSpec) -> str:
    return (
        "# in the dataset: without buffering=0\n"
        f'file = open(path, "rb", buffering={_BUFFER_BYTES})  # bytes read ahead at a time'
    )


TOGGLE = Toggle(
    name="buffered_open",
    title="Read through a buffer",
    effect="Files that are opened with buffering=0, or a tiny buffer, and read piece by piece get "
    f"a buffer of {bytes_text(_BUFFER_BYTES)}: one system call brings many pieces.",
    cost="Bytes that are read ahead and not used, where pieces lie far apart.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=53,
    saves=("file_read",),
)
