"""Whether the result of a transform of `datasets` lies in its cache, and why it does not."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

from jupyter_ioscope.capture.loaders._hf_unhashable import find, kind_of, name_of, parts_of
from jupyter_ioscope.model.observed import DONE_BEFORE, FIRST_RUN, MISS_BY_CHOICE

_SHARD = re.compile(r"_\d+_of_(\d+)\.arrow$")
_FINGERPRINT = re.compile(rb'"fingerprint": ?"[^"]*"')
# Hexadecimal digits of which some are decimal ones, six and more: no word, no year, no version.
_WORD = re.compile(r"[0-9A-Za-z]+")
_LONG_NUMBER = re.compile(r"(?=.*\d)[0-9a-fA-F]{6,}")
_HEADER_BYTES = 4096
_MOST_FILES = 64
_HISTORY = 256
_MOST_RANDOM = 4096
_SEEDED = ("shuffle", "train_test_split")
_RECENT_S = 30 * 86_400

# What a user sets: another value is another transform.
_VALUES = (str, bytes, int, float, bool, type(None), type(os))

DISABLED = f"{MISS_BY_CHOICE}caching is disabled"
NOT_ASKED = f"{MISS_BY_CHOICE}load_from_cache_file=False was given"
IN_MEMORY = f"{MISS_BY_CHOICE}the dataset was made in memory: it has no cache file"
KEPT_IN_MEMORY = f"{MISS_BY_CHOICE}keep_in_memory=True: nothing is written to the cache"


@dataclass
class Run:
    """What decides whether one transform hits the cache."""

    dataset: Any
    function: Any
    arguments: dict[str, Any]  # those that are hashed
    options: dict[str, Any]  # all that were given
    before: str  # fingerprint of the dataset
    after: str = ""  # fingerprint of the result
    random: bool = False  # the library could not hash it
    path: str = ""  # where the result goes, "" where it is not kept


@dataclass
class _Last:
    """The newest run of one function in this process."""

    before: str
    after: str
    parts: dict[str, str] = field(default_factory=dict)


_last_runs: dict[tuple[str, str], _Last] = {}  # outlives a profile: the cell is run again
_random: dict[str, str] = {}  # fingerprint that is another each time -> why


def passed_on(before: str, after: str) -> None:
    """Whatever is made of a dataset whose fingerprint is another each time has such a one too."""
    if before in _random:
        _note_random(after, _random[before])


def _note_random(fingerprint: str, why: str) -> None:
    _random[fingerprint] = why
    while len(_random) > _MOST_RANDOM:
        del _random[next(iter(_random))]


def judge(run: Run, kind: str, library: Any) -> tuple[bool, str]:
    """(whether the result comes from the cache, why not). `library` is `datasets.fingerprint`.

    Looks where the library will look, before it does: names of files only.
    """
    if kind in _SEEDED and not run.options.get("seeded"):
        _note_random(run.after, f"{kind} without a seed, which has another order each time")
    cached, why = _judge(run, library)
    key = (kind, _identity(run.function))
    last = _last_runs.get(key)
    parts = {} if cached else _part_hashes(run, library)
    if not cached and why == FIRST_RUN and last is not None:
        why = _changed(last, run, parts)
    if why.startswith(MISS_BY_CHOICE) and last is not None and last.after == run.after:
        why += DONE_BEFORE
    _last_runs.pop(key, None)
    _last_runs[key] = _Last(run.before, run.after, parts or (last.parts if last else {}))
    while len(_last_runs) > _HISTORY:
        del _last_runs[next(iter(_last_runs))]
    return cached, why


def _judge(run: Run, library: Any) -> tuple[bool, str]:
    enabled = bool(library.is_caching_enabled())
    asked = run.options.get("load_from_cache_file")
    run.path = _path(run, enabled)
    if run.path and (enabled if asked is None else asked) and _complete(run.path):
        return True, ""
    if run.random and enabled:
        _note_random(run.after, f"{name_of(run.function)}, which cannot be hashed")
        return False, _unhashable(run)
    if not enabled:
        return False, DISABLED
    if asked is False:
        return False, NOT_ASKED
    if not run.path:
        return False, KEPT_IN_MEMORY if run.options.get("keep_in_memory") else IN_MEMORY
    if run.before in _random:
        return False, f"its input comes from {_random[run.before]}"
    return False, FIRST_RUN


def _path(run: Run, enabled: bool) -> str:
    """Where the library keeps the result (`Dataset._get_cache_file_path`, without its drawing of a
    random name where caching is disabled)."""
    if run.options.get("keep_in_memory"):
        return ""
    given = run.options.get("cache_file_name") or run.options.get("indices_cache_file_name")
    if isinstance(given, str):
        return given
    files = run.dataset.cache_files
    if not files or not enabled:
        return ""
    return os.path.join(os.path.dirname(files[0]["filename"]), f"cache-{run.after}.arrow")


def _complete(path: str) -> bool:
    """Whether the file is there, or all shards that several processes made of it."""
    if os.path.exists(path):
        return True
    start, end = os.path.splitext(path)
    found: dict[int, int] = {}
    for name in glob.iglob(f"{glob.escape(start)}_*{end}"):
        match = _SHARD.search(name)
        if match:
            found[int(match[1])] = found.get(int(match[1]), 0) + 1
    return any(count >= shards for shards, count in found.items())


def _unhashable(run: Run) -> str:
    from datasets.utils._dill import dumps

    for name, value in (("function", run.function), *run.arguments.items()):
        named = name_of(value) if callable(value) else name
        culprit = find(value, named, dumps)
        if culprit is not None:
            return f"{culprit.path} cannot be hashed: {culprit.kind}"
    return "the function or an argument cannot be hashed"


def _identity(function: Any) -> str:
    while hasattr(function, "func"):
        function = function.func
    code = getattr(function, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{getattr(function, '__module__', '')}.{name_of(function)}:{place}"


def _part_hashes(run: Run, library: Any) -> dict[str, str]:
    """Hashes of the function's code and of each object that is hashed with it."""
    found: dict[str, str] = {}
    with contextlib.suppress(Exception):
        code = getattr(run.function, "__code__", None)
        if code is not None:
            found["its code"] = library.Hasher.hash(code)
        for name, part in (*parts_of(run.function), *_arguments(run)):
            if not callable(part):
                found[f"{name} ({kind_of(part)})"] = library.Hasher.hash(part)
    return found


def _arguments(run: Run) -> list[tuple[str, Any]]:
    given = [(name, item) for name, item in run.arguments.items() if item is not run.function]
    return [(name, item) for name, item in given if name not in ("fingerprint_name", "function")]


def _changed(last: _Last, run: Run, parts: dict[str, str]) -> str:
    """What is another than in the run before, "first run" for code that the user edited."""
    if last.after == run.after:
        return "its cached file is gone"
    if last.before != run.before:
        return "the dataset it is applied to has another fingerprint than the last time"
    if not last.parts or last.parts.get("its code") != parts.get("its code"):
        return FIRST_RUN
    other = [name for name in parts if last.parts.get(name, parts[name]) != parts[name]]
    if not other:
        return "its hash is another than the last time"
    return f"{other[0]} has another hash than the last time"


def written_before(run: Run) -> str:
    """After the run: whether equal results lie in the cache folder under other fingerprints, and
    what the function holds that may be another each time. "" where nothing says so.

    Equal are files of the same size and the same columns. Only for functions that hold objects, or
    what names a run: code and settings have the same hash until somebody edits them.
    """
    held = [
        f"{name.lstrip('.')} ({kind_of(part)})"
        for name, part in parts_of(run.function)
        if not callable(part) and (not isinstance(part, _VALUES) or _of_one_run(part))
    ]
    if not held or not run.path or not os.path.exists(run.path):
        return ""
    same = _equal_files(run.path)
    if not same:
        return ""
    results = "an earlier result" if same == 1 else f"{same} earlier results"
    return (
        f"beside it, with the same size and columns, {results} under another fingerprint: "
        f"{held[0]} has another hash each time"
    )


def _of_one_run(value: Any) -> bool:
    """Whether a number is a time of these days, in seconds, or a text holds a long number: a time,
    a number of a process or job, an identifier that was drawn."""
    if isinstance(value, str):
        return any(_LONG_NUMBER.fullmatch(word) for word in _WORD.findall(value))
    return isinstance(value, (int, float)) and abs(value - time.time()) < _RECENT_S


def _equal_files(path: str) -> int:
    size, header, count = os.path.getsize(path), _header(path), 0
    with os.scandir(os.path.dirname(path)) as entries:
        for looked, entry in enumerate(entries):
            if looked >= 10 * _MOST_FILES or count >= _MOST_FILES:
                break
            cache = entry.name.startswith("cache-") and entry.name.endswith(".arrow")
            if not cache or entry.path == path or entry.stat().st_size != size:
                continue
            count += _header(entry.path) == header
    return count


def _header(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return _FINGERPRINT.sub(b"", file.read(_HEADER_BYTES))
