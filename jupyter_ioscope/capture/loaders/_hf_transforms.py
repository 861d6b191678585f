"""Notes the transforms of `datasets` (`map`, `filter`, ...) while a profile runs.

A wrapper around `map` would stand in the tracebacks of the user's functions. Instead the hooks sit
where the library makes the fingerprint of the result, which nothing of the user's is called from
but pickling: there begins the record. A small object left in a dictionary that only the library's
function holds ends it: the dictionary goes when the function does, by return or by exception.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jupyter_ioscope import optional
from jupyter_ioscope.capture.loaders import _hf_cache
from jupyter_ioscope.capture.loaders._hf_unhashable import name_of
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import Recorder
from jupyter_ioscope.model.observed import FIRST_RUN, Transform

# The library's name of a transform -> ours. The others only rearrange the table.
_KINDS = {
    "_map_single": "map",
    "map": "map",
    "filter": "filter",
    "flatten_indices": "flatten_indices",
    "shuffle": "shuffle",
    "select": "select",
    "_select_with_indices_mapping": "select",
    "sort": "sort",
    "train_test_split": "train_test_split",
}
_ALWAYS = ("map", "filter")
_LEAST_NS = 50_000_000  # shorter ones of the others are not kept
_MOST = 2_000
_KEY = "ioscope"
_COLUMNS = 32
_OPTIONS = (
    "function", "batched", "batch_size", "num_proc", "keep_in_memory", "load_from_cache_file",
    "cache_file_name", "indices_cache_file_name",
)  # fmt: skip
_DEFAULT_BATCH = 1000  # of `Dataset.map` and `Dataset.filter`


class _Ending:
    """Says when the dictionary it lies in is gone."""

    __slots__ = ("_ended",)

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._ended()

    def __reduce__(self) -> tuple[Any, ...]:
        return (bool, ())  # whoever pickles the dictionary gets nothing of ours


@dataclass
class _Call:
    kind: str
    run: _hf_cache.Run | None
    frame_id: int
    thread: int
    start_ns: int
    start_cpu_ns: int
    rows: int = -1
    batched: bool = False
    batch_size: int = -1
    num_proc: int = 1
    columns: tuple[str, ...] = ()
    function: str = ""
    end_ns: int = 0
    cpu_ns: int = 0
    cached: bool = False
    why: str = ""

    def row(self) -> Transform:
        return Transform(
            library="datasets",
            kind=self.kind,
            function=self.function,
            rows=self.rows,
            batched=self.batched,
            batch_size=self.batch_size,
            num_proc=self.num_proc,
            start_ns=self.start_ns,
            end_ns=self.end_ns,
            cpu_ns=self.cpu_ns,
            cached=self.cached,
            why_missed=self.why,
            columns=self.columns,
        )


class _Here(threading.local):
    def __init__(self) -> None:
        self.open: list[_Call] = []
        self.random = False


@dataclass
class TransformLog:
    """The transforms of one profile."""

    recorder: Recorder
    done: list[_Call] = field(default_factory=list)
    gap: str = ""
    _here: _Here = field(default_factory=_Here)
    _unfinished: list[_Call] = field(default_factory=list)

    def finished(self) -> tuple[Transform, ...]:
        """What was recorded, oldest first. What still runs ends now."""
        for call in list(self._unfinished):
            self.ended(call)
        kept = [
            call
            for call in self.done
            if call.kind in _ALWAYS or call.end_ns - call.start_ns >= _LEAST_NS
        ]
        return tuple(call.row() for call in sorted(kept, key=lambda call: call.start_ns))

    def install(self, patches: Patches) -> None:
        fingerprint: Any = optional.loaded("datasets.fingerprint")
        arrow: Any = optional.loaded("datasets.arrow_dataset")
        for module in (fingerprint, arrow):
            original = getattr(module, "update_fingerprint", None)
            if original is not None:
                patches.set(module, "update_fingerprint", self._watched_update(original))
        for module, name, hook in (
            (fingerprint, "generate_random_fingerprint", self._watched_random),
            (arrow, "validate_fingerprint", self._watched_validate),
        ):
            if hasattr(module, name):
                patches.set(module, name, hook(getattr(module, name)))

    # -- hooks ------------------------------------------------------------------------------------

    def _watched_update(self, original: Any) -> Any:
        def update_fingerprint(fingerprint: Any, transform: Any, transform_args: Any) -> Any:
            if not self.recorder.recording_here():
                return original(fingerprint, transform, transform_args)
            ending = None
            if isinstance(transform_args, dict):  # hashed again: it must be as it was
                ending = transform_args.pop(_KEY, None)
            call = self._begins(sys._getframe(1), transform, transform_args)
            self._here.random = False
            after = original(fingerprint, transform, transform_args)
            _hf_cache.passed_on(fingerprint, after)
            if call is not None:
                ending = self._begun(call, after)
            if ending is not None:
                transform_args[_KEY] = ending
            return after

        return update_fingerprint

    def _watched_random(self, original: Any) -> Any:
        def generate_random_fingerprint(*args: Any, **keywords: Any) -> Any:
            self._here.random = True
            return original(*args, **keywords)

        return generate_random_fingerprint

    def _watched_validate(self, original: Any) -> Any:
        """`map` with a fingerprint that the user gives makes none."""

        def validate_fingerprint(fingerprint: Any, *args: Any, **keywords: Any) -> Any:
            original(fingerprint, *args, **keywords)
            frame = sys._getframe(1)
            if frame.f_code.co_name != "map" or not self.recorder.recording_here():
                return
            # A set of words that the library checked at the beginning and does not need any more.
            place = frame.f_locals.get("fields")
            call = self._begins(frame, "map", {}) if isinstance(place, set) else None
            ending = self._begun(call, fingerprint) if call is not None else None
            if ending is not None and isinstance(place, set):
                place.add(ending)

        return validate_fingerprint

    # -- the record -------------------------------------------------------------------------------

    def _begins(self, frame: FrameType, transform: Any, arguments: Any) -> _Call | None:
        """A record, None for what is part of another transform, or of no interest."""
        kind = _KINDS.get(str(transform).partition("@")[0].rpartition(".")[2])
        if kind is None or len(self.done) >= _MOST or self._inside_another(frame):
            return None
        try:
            call = _Call(
                kind,
                None,
                id(frame),
                threading.get_ident(),
                time.monotonic_ns(),
                _cpu_ns(),
            )
            _read(call, frame, arguments)
            return call
        except Exception as error:
            self._broke(error)
            return None

    def _begun(self, call: _Call, after: Any) -> _Ending | None:
        try:
            run = call.run
            if run is not None:
                run.after, run.random = str(after), self._here.random
                library: Any = optional.loaded("datasets.fingerprint")
                call.cached, call.why = _hf_cache.judge(run, call.kind, library)
            self._here.open.append(call)
            self._unfinished.append(call)
            return _Ending(lambda: self.ended(call))
        except Exception as error:
            self._broke(error)
            return None

    def ended(self, call: _Call) -> None:
        if call.end_ns or os.getpid() != self.recorder.pid:
            return
        call.end_ns = time.monotonic_ns()
        if call.thread == threading.get_ident():
            call.cpu_ns = max(0, _cpu_ns() - call.start_cpu_ns)
        for pile in (self._here.open, self._unfinished):
            if call in pile:
                pile.remove(call)
        run, call.run = call.run, None  # the user's objects are let go
        if run is not None and not call.cached and call.why == FIRST_RUN:
            with contextlib.suppress(Exception):
                call.why = _hf_cache.written_before(run) or call.why
        self.done.append(call)

    def _inside_another(self, frame: FrameType) -> bool:
        """Whether a transform whose function is still on the stack was begun in this thread. Of
        one that failed, a traceback may keep the frame: it is forgotten here."""
        open_calls = self._here.open
        if not open_calls:
            return False
        on_stack: set[int] = set()
        above: FrameType | None = frame.f_back
        while above is not None:
            on_stack.add(id(above))
            above = above.f_back
        for call in list(open_calls):
            if call.frame_id not in on_stack and call.frame_id != id(frame):
                open_calls.remove(call)
                self._unfinished.remove(call)
                call.run = None
        return bool(open_calls)

    def _broke(self, error: BaseException) -> None:
        self.gap = f"{type(error).__name__}: {error}"


def _read(call: _Call, frame: FrameType, arguments: Any) -> None:
    """Fill in what the library's function was given: `map` has it in its variables, the others in
    those of the decorator that hashes."""
    own = frame.f_locals
    given = arguments if isinstance(arguments, dict) else {}
    in_map = "dataset" not in own
    dataset = own["self"] if in_map else own["dataset"]
    known = own if in_map else {**own.get("kwargs", {}), **given}
    # Only these: among the variables of `map` is the dictionary that ends this record.
    options = {name: known[name] for name in _OPTIONS if name in known}
    function = options.pop("function", None)
    named = own.get("kwargs", {})
    seeds = (named.get("seed"), named.get("generator"), *own.get("args", ())[:1])
    options["seeded"] = any(seed is not None for seed in seeds)
    call.run = _hf_cache.Run(dataset, function, dict(given), options, str(dataset._fingerprint))
    call.function = name_of(function) if function is not None else ""
    call.rows = int(dataset.num_rows)
    call.columns = tuple(map(str, dataset.column_names[:_COLUMNS]))
    if call.kind in _ALWAYS:
        call.batched = bool(options.get("batched", False))
        size = options.get("batch_size", _DEFAULT_BATCH)
        call.batch_size = size if call.batched and isinstance(size, int) else -1
    processes = options.get("num_proc")
    call.num_proc = processes if isinstance(processes, int) and processes > 0 else 1


def _cpu_ns() -> int:
    """CPU of this thread, and of the processes it has waited for."""
    used_ns = time.thread_time_ns()
    with contextlib.suppress(ImportError):
        import resource

        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_ns += int((children.ru_utime + children.ru_stime) * 1e9)
    return used_ns


_logs: weakref.WeakKeyDictionary[Recorder, TransformLog] = weakref.WeakKeyDictionary()


def log_of(recorder: Recorder) -> TransformLog:
    """The one log of a profile: filled by the loader plug-in, read by the observer."""
    return _logs.setdefault(recorder, TransformLog(recorder))
