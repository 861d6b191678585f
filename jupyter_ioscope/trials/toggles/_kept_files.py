"""Libraries that open containers, made to keep them open: one `install_...` for each library.

What is opened for reading with the same arguments again is the handle from before; closing it does
nothing. All of it is for a trial's child and its workers.
"""

from __future__ import annotations

import functools
from typing import Any

from jupyter_ioscope.optional import need
from jupyter_ioscope.trials.toggles._handles import Handles, file_key
from jupyter_ioscope.trials.toggles._rebind import rebind


def install_h5py(handles: Handles) -> None:
    h5py: Any = need("h5py", "opening an HDF5 file")
    kind: Any = h5py.File
    original, close = kind.__init__, kind.close
    attach: Any = next(one for one in kind.__mro__ if one.__name__ == "HLObject").__init__

    @functools.wraps(original)
    def init(self: Any, name: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
        key = file_key("h5py", name, args, kwargs) if mode == "r" else None
        if key is None:
            original(self, name, mode, *args, **kwargs)
            return
        kept = handles.get(key)
        if kept is None or not kept[0].valid:
            original(self, name, mode, *args, **kwargs)
            handles.put(key, (self.id, dict(vars(self))))
        else:
            attach(self, kept[0])
            vars(self).update(kept[1])
        self._ioscope_kept = True

    @functools.wraps(close)
    def deferred(self: Any) -> None:
        if not getattr(self, "_ioscope_kept", False):
            close(self)

    kind.__init__, kind.close = init, deferred


def install_zipfile(handles: Handles) -> None:
    import zipfile

    kind: Any = zipfile.ZipFile
    original = kind.__init__

    @functools.wraps(original)
    def init(self: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
        key = file_key("zip", file, args, kwargs) if mode == "r" else None
        kept = handles.get(key) if key is not None else None
        if kept is not None:
            vars(self).update(kept)
            return
        original(self, file, mode, *args, **kwargs)
        if key is not None:
            # What was "passed" to a ZipFile is not closed by it.
            self._filePassed = 1
            handles.put(key, dict(vars(self)))

    kind.__init__ = init


def install_tarfile(handles: Handles) -> None:
    import tarfile

    kind: Any = tarfile.TarFile
    original = kind.open.__func__

    @functools.wraps(original)
    def opened(
        cls: Any, name: Any = None, mode: str = "r", fileobj: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        reads = mode.startswith("r") and "|" not in mode and fileobj is None
        key = file_key("tar", name, cls.__name__, mode, args, kwargs) if reads else None
        kept = handles.get(key) if key is not None else None
        if kept is not None:
            return kept
        made = original(cls, name, mode, fileobj, *args, **kwargs)
        if key is not None:
            made._extfileobj = True  # __exit__ after an error would close it, too
            made.close = lambda: None
            made.getmembers()  # the whole index: the next user begins where this one does
            handles.put(key, made)
        return made

    kind.open = classmethod(opened)
    rebind(tarfile, "open", kind.open)


def install_sqlite3(handles: Handles) -> None:
    import sqlite3
    import threading

    class Kept(sqlite3.Connection):
        def close(self) -> None:
            self.rollback()

    original = sqlite3.connect

    @functools.wraps(original)
    def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
        # A connection may be used by the thread only that made it.
        options = (args, sorted(kwargs.items()), threading.get_ident())
        path = database
        if isinstance(database, str) and database.startswith("file:"):
            path = database[5:].partition("?")[0]
        key = file_key("sqlite", path, database, options)
        if key is None or "factory" in kwargs or len(args) > 4:
            return original(database, *args, **kwargs)
        kept = handles.get(key)
        if kept is None:
            kept = original(database, *args, factory=Kept, **kwargs)
            handles.put(key, kept)
        return kept

    rebind(sqlite3, "connect", connect)


def install_lmdb(handles: Handles) -> None:
    lmdb: Any = need("lmdb", "opening an LMDB environment")
    original: Any = lmdb.open

    @functools.wraps(original, updated=())
    def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
        reads = bool(kwargs.get("readonly", False))
        key = file_key("lmdb", path, args, sorted(kwargs.items())) if reads else None
        if key is None:
            return original(path, *args, **kwargs)
        kept = handles.get(key)
        if kept is None:
            kept = KeptEnvironment(original(path, *args, **kwargs))
            handles.put(key, kept)
        return kept

    same = lmdb.Environment is original
    rebind(lmdb, "open", opened)
    if same:
        lmdb.Environment = opened


class KeptEnvironment:
    """An LMDB environment that is not closed; everything else is the environment's own."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment

    def close(self) -> None:
        """Deferred to the end of the process."""

    def __enter__(self) -> KeptEnvironment:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)
