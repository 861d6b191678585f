"""A library that the profiled cell imports is recorded, and its module is left as it was."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from jupyter_ioscope.capture.loaders._loader import ImportWatcher


def test_the_first_import_is_told_once_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ioscope_imported_here.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[str] = []
    watcher = ImportWatcher("ioscope_imported_here", lambda: told.append("imported"))
    watcher.start()
    try:
        module = importlib.import_module("ioscope_imported_here")
        assert told == ["imported"]
    finally:
        watcher.stop()
        imported = sys.modules.pop("ioscope_imported_here", None)
    assert watcher not in sys.meta_path
    assert imported is module
    assert module.__spec__ is not None
    assert "exec_module" not in vars(module.__spec__.loader)
    sys.modules["ioscope_imported_here"] = module
    try:
        importlib.reload(module)
    finally:
        del sys.modules["ioscope_imported_here"]
    assert told == ["imported"]
