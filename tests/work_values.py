"""Profiles whose fetches were seen doing given kinds of work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jupyter_ioscope.model.observed import FileUse, LineCalls, ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Frame, Stack, Stacks
from tests import builders
from tests.simulator import PID

LIB = "/v/lib/python3.11"
SITE = f"{LIB}/site-packages"
FETCH = Frame("_MapDatasetFetcher.fetch", f"{SITE}/torch/utils/data/_utils/fetch.py", 54)
JOIN = FETCH._replace(line=57)
GET = Frame("Items.__getitem__", "/me/data.py", 12)
OWN_JOIN = Frame("join", "/me/data.py", 40)
COLLATE = Frame("collate_tensor_fn", f"{SITE}/torch/utils/data/_utils/collate.py", 270)

Row = tuple[tuple[Frame, ...], int]

JSON = (
    GET,
    Frame("loads", f"{LIB}/json/__init__.py", 346),
    Frame("decode", f"{LIB}/json/decoder.py", 337),
)
JPEG = (
    GET,
    Frame("Image.convert", f"{SITE}/PIL/Image.py", 1060),
    Frame("ImageFile.load", f"{SITE}/PIL/ImageFile.py", 425),
)
RESIZE = (GET, Frame("Image.resize", f"{SITE}/PIL/Image.py", 2440))
H5_OPEN = (
    GET,
    Frame("File.__init__", f"{SITE}/h5py/_hl/files.py", 560),
    Frame("make_fid", f"{SITE}/h5py/_hl/files.py", 232),
)
H5_READ = (GET, Frame("Dataset.__getitem__", f"{SITE}/h5py/_hl/dataset.py", 800))
NPZ = (
    GET,
    Frame("NpzFile.__getitem__", f"{SITE}/numpy/lib/_npyio_impl.py", 257),
    Frame("ZipExtFile.read", f"{LIB}/zipfile.py", 955),
)
SEEK = (
    GET,
    Frame("GzipFile.seek", f"{LIB}/gzip.py", 393),
    Frame("DecompressReader.seek", f"{LIB}/_compression.py", 153),
    Frame("_GzipReader.read", f"{LIB}/gzip.py", 507),
)
PANDAS = (GET, Frame("_LocationIndexer.__getitem__", f"{SITE}/pandas/core/indexing.py", 1190))
ZIP_OPEN = (
    GET,
    Frame("ZipFile.__init__", f"{LIB}/zipfile.py", 1300),
    Frame("ZipFile._RealGetContents", f"{LIB}/zipfile.py", 1400),
)
USER = (GET, Frame("compute", "/me/data.py", 20))
OPEN_LINE = (GET._replace(line=30),)
READ_LINE = (GET._replace(line=31),)
QUERY_LINE = (GET._replace(line=32),)
CALLS = (
    LineCalls("/me/data.py", 30, ("open",)),
    LineCalls("/me/data.py", 31, (".read",)),
    LineCalls("/me/data.py", 32, (".execute", ".fetchone")),
)


def seen(*rows: Row, role: str = "consumer", join: bool = False) -> Stacks:
    """Stacks of fetches: frames below torch's fetch, outermost first, with their counts."""
    above = JOIN if join else FETCH
    whole = [((above, *frames), count) for frames, count in rows]
    frames = tuple(dict.fromkeys(frame for row, _ in whole for frame in row))
    stacks = tuple(
        Stack(
            role,
            -1 if role == "consumer" else 0,
            PID,
            "MainThread",
            tuple(frames.index(f) for f in row),
            count,
        )
        for row, count in whole
    )
    return Stacks("py-spy", 25.0, True, frames, stacks)


def profile(
    *rows: Row,
    workers: int = 0,
    read_bytes: int = 0,
    read_calls: int = 0,
    collate: str = "torch",
    **settings: Any,
) -> Profile:
    """A loader whose fetches were seen in `rows`; each sample read `read_bytes` in `read_calls`."""
    made = builders.profile(workers, **{"batches": 100, "fetch_cv": 0.05, **settings})
    role = "worker" if workers else "consumer"
    samples = sum(row.samples for row in made.fetches)
    pids = sorted({row.pid for row in made.fetches})
    each = samples // len(pids)
    use = tuple(
        ProcessUse(
            pid,
            -1 if pid == PID else number,
            made.start_ns,
            made.end_ns,
            read_calls * each,
            read_bytes * each,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        )
        for number, pid in enumerate(pids)
    )
    loaders = tuple(replace(row, facts=(("collate", collate),)) for row in made.loaders)
    return builders.without(
        made, stacks=seen(*rows, role=role), processes=use, calls=CALLS, loaders=loaders
    )


def opened(
    made: Profile, *, files: int, opens: int = 1, size: int = 4096, kind: str = "ext4"
) -> Profile:
    """`made` as if its fetches had opened so many files so often each."""
    pid = made.fetches[0].pid
    worker = made.fetches[0].worker
    uses = tuple(
        FileUse(f"/data/{number}.bin", pid, worker, "fetch", "r", opens, size, kind)
        for number in range(files)
    )
    return builders.without(made, files=uses)
