"""Counts how often a program opens containers, in a learning child only."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.toggles._handles import file_key
from jupyter_ioscope.trials.toggles._rebind import rebind


@dataclass
class Opens:
    """Opens of one library."""

    reading: dict[Any, int] = field(default_factory=dict)  # file and arguments -> how often
    writing: int = 0
    statements: set[str] = field(default_factory=set)  # first words of SQL

    def note(self, key: Any) -> None:
        if key is not None:
            self.reading[key] = self.reading.get(key, 0) + 1

    @property
    def again(self) -> int:
        """Opens of what had been open before."""
        return sum(count - 1 for count in self.reading.values())


class OpenWatch:
    """Patches libraries for good; only for processes that end soon after."""

    def __init__(self) -> None:
        self.opens: dict[str, Opens] = {}

    def install(self) -> None:
        for name, watch in (
            ("h5py", self._h5py),
            ("zipfile", self._zipfile),
            ("tarfile", self._tarfile),
            ("sqlite3", self._sqlite3),
            ("lmdb", self._lmdb),
        ):
            module = loaded(name)
            if module is not None:
                self.opens[name] = Opens()
                watch(module, self.opens[name])

    def _h5py(self, module: Any, opens: Opens) -> None:
        original = module.File.__init__

        @functools.wraps(original)
        def init(self: Any, name: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
            _noted(opens, mode == "r", file_key("h5py", name, args, kwargs))
            original(self, name, mode, *args, **kwargs)

        module.File.__init__ = init

    def _zipfile(self, module: Any, opens: Opens) -> None:
        original = module.ZipFile.__init__

        @functools.wraps(original)
        def init(self: Any, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
            _noted(opens, mode == "r", file_key("zip", file, args, kwargs))
            original(self, file, mode, *args, **kwargs)

        module.ZipFile.__init__ = init

    def _tarfile(self, module: Any, opens: Opens) -> None:
        original = module.TarFile.open.__func__

        @functools.wraps(original)
        def opened(
            cls: Any, name: Any = None, mode: str = "r", fileobj: Any = None, *a: Any, **k: Any
        ) -> Any:
            reads = mode.startswith("r") and "|" not in mode
            if fileobj is None:
                _noted(opens, reads, file_key("tar", name, cls.__name__, mode, a, k))
            return original(cls, name, mode, fileobj, *a, **k)

        module.TarFile.open = classmethod(opened)
        rebind(module, "open", module.TarFile.open)

    def _sqlite3(self, module: Any, opens: Opens) -> None:
        original = module.connect

        @functools.wraps(original)
        def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
            path = str(database)
            path = path[5:].partition("?")[0] if path.startswith("file:") else path
            _noted(opens, True, file_key("sqlite", path, database, args, sorted(kwargs.items())))
            made = original(database, *args, **kwargs)
            made.set_trace_callback(lambda text: opens.statements.add(_first_word(text)))
            return made

        rebind(module, "connect", connect)

    def _lmdb(self, module: Any, opens: Opens) -> None:
        original = module.open

        @functools.wraps(original, updated=())
        def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
            reads = bool(kwargs.get("readonly", False))
            _noted(opens, reads, file_key("lmdb", path, args, sorted(kwargs.items())))
            return original(path, *args, **kwargs)

        same = module.Environment is original
        rebind(module, "open", opened)
        if same:
            module.Environment = opened


def _noted(opens: Opens, reads: bool, key: Any) -> None:
    if reads:
        opens.note(key)
    else:
        opens.writing += 1


def _first_word(text: str) -> str:
    words = text.lstrip(" \t\r\n(").split(None, 1)
    return words[0].upper() if words else ""
