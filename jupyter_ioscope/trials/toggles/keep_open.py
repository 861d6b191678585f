"""Containers (HDF5, zip, tar, SQLite, LMDB) opened once a worker instead of once a sample."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles import _kept_files
from jupyter_ioscope.trials.toggles._handles import Handles
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._open_watch import OpenWatch

_INSTALL: dict[str, Callable[[Handles], None]] = {
    "h5py": _kept_files.install_h5py,
    "lmdb": _kept_files.install_lmdb,
    "sqlite3": _kept_files.install_sqlite3,
    "tarfile": _kept_files.install_tarfile,
    "zipfile": _kept_files.install_zipfile,
}
_OPENING = {
    "h5py": 'h5py.File(path, "r")',
    "lmdb": "lmdb.open(path, readonly=True, lock=False)",
    "sqlite3": 'sqlite3.connect(f"file:{path}?mode=ro", uri=True)',
    "tarfile": "tarfile.open(path)",
    "zipfile": "zipfile.ZipFile(path)",
}
_LEAST_AGAIN = 0.1  # opens of known files a sample, below which nothing is to be had
_READING_SQL = frozenset(("SELECT", "PRAGMA", "WITH", "BEGIN", "COMMIT", "ROLLBACK", "EXPLAIN", ""))
_installed: set[tuple[int, str]] = set()


@dataclass(frozen=True)
class KeepOpen:
    """Keeps what these libraries open for reading; in a trial's child and its workers."""

    libraries: tuple[str, ...]

    def install(self) -> None:
        for name in self.libraries:
            if (os.getpid(), name) not in _installed and not _inherits(name):
                _INSTALL[name](Handles())
            _installed.add((os.getpid(), name))


def _inherits(name: str) -> bool:
    """Whether a process that this one was forked from has it already."""
    return any(known == name for _, known in _installed)


def refuse(spec: LoaderSpec) -> str:
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """How often containers are opened again. Runs in a child: the libraries stay patched."""
    watch = OpenWatch()
    watch.install()
    samples = look(spec).samples
    return {
        "samples": samples,
        "opens": {
            name: {
                "again": opens.again,
                "files": len(opens.reading),
                "writing": opens.writing,
                "statements": sorted(opens.statements - _READING_SQL),
            }
            for name, opens in watch.opens.items()
        },
    }


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    kept, reasons = [], []
    for name, row in facts["opens"].items():
        least = _LEAST_AGAIN * facts["samples"]
        if row["again"] < least and row["writing"] < least:
            continue
        if row["writing"]:
            reasons.append(f"{name} files are opened for writing, too, or not as read-only")
        elif row["statements"]:
            reasons.append(f"the database is changed ({row['statements'][0]})")
        else:
            kept.append(name)
    if not kept:
        reason = "; ".join(reasons) or (
            f"the first {facts['samples']} samples opened no container (HDF5, zip, tar, SQLite, "
            "LMDB) again that had been open before"
        )
        raise_if(reason, "keep_open")
    return spec.changed(in_child=(*spec.in_child, KeepOpen(tuple(sorted(kept)))))


def code(spec: LoaderSpec) -> str:
    names = [c.libraries for c in spec.in_child if isinstance(c, KeepOpen)]
    opening = _OPENING[names[0][0]] if names else 'h5py.File(path, "r")'
    return (
        "# in the dataset: opened at first use, so once in each worker and after the fork\n"
        "def __init__(self, path):\n"
        "    self.path, self._file, self._pid = path, None, None\n"
        "\n"
        "def file(self):\n"
        "    if self._file is None or self._pid != os.getpid():\n"
        f"        self._file, self._pid = {opening.replace('path', 'self.path')}, os.getpid()\n"
        "    return self._file\n"
        "\n"
        "def __getstate__(self):  # an open file does not go into spawned workers\n"
        '    return {**vars(self), "_file": None}'
    )


TOGGLE = Toggle(
    name="keep_open",
    title="Open containers once a worker",
    effect="HDF5, zip, tar, SQLite and LMDB files that are opened for every sample are opened once "
    "in each worker and kept, with their index and caches.",
    cost="One open file and its index stay in memory in each worker. A file that is replaced "
    "while the worker runs is opened anew, one that is changed in place may not be noticed.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=55,
    saves=("container_open",),
)
