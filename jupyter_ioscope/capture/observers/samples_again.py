"""Whether samples that a loader makes again are those it made before."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.capture.sample_checksums import Note, compared
from jupyter_ioscope.model.observed import SamplesAgain

_ROW = struct.Struct("<qII")


def keep_notes(folder: str, loader: int, notes: Iterable[Note]) -> None:
    """Append a worker's notes to a file of its own: a killed worker loses none. Once the profile is
    over its folder is gone, and so is the interest in them."""
    with contextlib.suppress(OSError, struct.error):
        path = os.path.join(folder, f"samples-{os.getpid()}-{loader}.bin")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"".join(_ROW.pack(*note) for note in notes))
        finally:
            os.close(fd)


def kept_notes(folder: str) -> Iterator[tuple[int, Note]]:
    """(number of the loader, note) of all workers; damaged files are passed over."""
    for path in sorted(Path(folder).glob("samples-*-*.bin")):
        with contextlib.suppress(OSError, ValueError):
            loader, raw = int(path.stem.rpartition("-")[2]), path.read_bytes()
            for row in _ROW.iter_unpack(raw[: len(raw) // _ROW.size * _ROW.size]):
                yield loader, Note(*row)


class SamplesMadeAgain:
    """The plug-in. Who fetches makes the notes: workers in files, the consumer in the recorder."""

    name = "samples made again"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        def end(workers: dict[int, int]) -> Observed:
            notes: dict[int, list[Note]] = {}
            for loader, note in (*watched.recorder.sample_notes, *kept_notes(watched.folder)):
                notes.setdefault(loader, []).append(note)
            rows = (SamplesAgain(loader, *compared(notes[loader])) for loader in sorted(notes))
            return Observed(samples_again=tuple(row for row in rows if row.compared))

        return end

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        pass


OBSERVER = SamplesMadeAgain()
