"""Starts and stops a profile: the one place where records, sampler and stacks meet."""

from __future__ import annotations

import contextlib
import logging
import numbers
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from types import MappingProxyType

from jupyter_ioscope import optional, registry
from jupyter_ioscope.arguments import checked_bool
from jupyter_ioscope.capture import loaders as loader_plugins
from jupyter_ioscope.capture.afterwards import with_details
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.loaders._loader import ImportWatcher, Loader, WorkerSettings
from jupyter_ioscope.capture.machine import machine
from jupyter_ioscope.capture.matching import matched
from jupyter_ioscope.capture.observers._observer import Observed, Observers, Watched
from jupyter_ioscope.capture.patching import Patches
from jupyter_ioscope.capture.recorder import Recorder
from jupyter_ioscope.capture.records import read_worker_files
from jupyter_ioscope.capture.records_cost import records_cost_s
from jupyter_ioscope.capture.request import FOLDER_PREFIX, SamplerRequest, SamplerResult
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.capture.stacks import InProcessStacks
from jupyter_ioscope.errors import CaptureError, InputError
from jupyter_ioscope.model.profile import Cell, Cost, Gap, Profile

log = logging.getLogger("ioscope")

# Where `batches` is not given. Enough for shares to half a percent; the report of so many takes
# about two seconds to make.
MOST_BATCHES = 25_000

_running = threading.Lock()  # one profile at a time in a process
_recorder: Recorder | None = None  # that profile's, once it records


def recording() -> bool:
    """Whether a profile is being recorded in this process."""
    return _running.locked()


def progress_now() -> tuple[int, float, float] | None:
    """`Recorder.progress` of the profile that is being recorded in this process; None without."""
    recorder = _recorder
    return recorder.progress() if recorder is not None and recorder.active else None


@dataclass(frozen=True)
class CaptureOptions:
    """What to record. `seconds` and `batches` end the recording early; the cell goes on.
    Without `batches` it ends after `MOST_BATCHES`.

    States of threads and stacks are read `rate_hz` times a second; after the first seconds stacks
    are read less often, see `two_pace`. `block_trace` takes rights that few have (`capture.block`).
    """

    seconds: float | None = None
    batches: int | None = None
    rate_hz: float = 25.0
    stacks: bool = True
    label: str = ""
    block_trace: bool = False

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("batches", self.batches)):
            if value is not None and not (_is_real(value) and value > 0):
                raise InputError(f"{name} is {value!r}: give a number above 0, or leave it out")
        if self.batches is not None and not _is_whole(self.batches):
            raise InputError(f"batches is {self.batches!r}: give a whole number, or leave it out")
        if not (_is_real(self.rate_hz) and 1 <= self.rate_hz <= 200):
            raise InputError(f"rate_hz is {self.rate_hz!r}: give 1 to 200 readings a second")
        for name in ("stacks", "block_trace"):
            checked_bool(name, getattr(self, name))
        if not isinstance(self.label, str):
            raise InputError(f"label is {self.label!r}: give a text")


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral)


def _is_real(value: object) -> bool:
    """NumPy's numbers are; True and texts are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


class Profiler:
    """Records one profile.

    `start()` and `stop()` are called once each, `stop()` also after an exception. Whatever fails
    inside becomes a gap of the profile, never an exception in the user's cell; only `start()`
    raises, and only before anything was changed.
    """

    def __init__(self, options: CaptureOptions, cells: CellMap | None = None) -> None:
        self.options = options
        self.cells = cells or CellMap()
        self.recorder: Recorder | None = None
        self._gaps: list[Gap] = []
        self._patches = Patches()
        self._watchers: list[ImportWatcher] = []
        self._own_stacks: InProcessStacks | None = None
        self._observers: Observers | None = None
        self._observed = Observed()
        self._timer: threading.Timer | None = None
        self._halting = threading.Lock()
        self._halted = False
        self._early = False
        self._sampled = SamplerResult(tier="in_process")
        self._end_ns = 0
        self._pid = os.getpid()
        self._tid = threading.get_native_id()
        self._created = datetime.now(timezone.utc)

    def start(self) -> None:
        """Begin to record.

        Raises:
            InputError: another profile is being recorded in this process.
            CaptureError: no private folder can be made.
        """
        if not _running.acquire(blocking=False):
            raise InputError("a profile is already being recorded here: let it end first")
        try:
            self._folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
        except OSError as error:
            _running.release()
            raise CaptureError(
                f"no folder for the records can be made ({error}): set TMPDIR to one that can be "
                "written to"
            ) from error
        try:
            self._start()
        except BaseException:
            self._clean_up()
            raise

    def _start(self) -> None:
        options = self.options
        self.recorder = recorder = Recorder(
            self._folder, options.batches or MOST_BATCHES, self._halt_soon
        )
        settings = self._watch(recorder)
        self._observe(recorder, attach=settings.inprocess_stacks_hz == 0)
        self._install(recorder, settings)
        global _recorder
        _recorder = recorder
        self.start_ns = time.monotonic_ns()
        if options.seconds is not None:
            after_s = min(options.seconds, threading.TIMEOUT_MAX)
            self._timer = threading.Timer(after_s, self._halt_early)
            self._timer.daemon = True
            self._timer.start()

    def _watch(self, recorder: Recorder) -> WorkerSettings:
        """Start the sampler and the stacks; a failure becomes a gap."""
        options = self.options
        request = SamplerRequest(
            pid=os.getpid(),
            consumer_tid=self._tid,
            session_dir=self._folder,
            rate_hz=options.rate_hz,
            stacks=options.stacks,
            stack_rate_hz=options.rate_hz,
            block_trace=options.block_trace,
        )
        try:
            self._sampler: Sampler | None = Sampler.shared()
            rights = self._sampler.start(request)
        except Exception as error:
            log.warning("ioscope: no sampler", exc_info=True)
            self._sampler = None
            self._gaps.append(Gap("thread states, counters, stacks", f"sampler: {error}"))
            return WorkerSettings(self._folder, stacks=options.stacks)
        own_hz = 0.0
        if options.stacks and rights.stacks == "in-process":
            own_hz = options.rate_hz
            path = os.path.join(self._folder, f"stacks-{os.getpid()}.json")
            self._own_stacks = InProcessStacks(path, own_hz)
            self._own_stacks.start()
        return WorkerSettings(self._folder, rights.helper_pid, own_hz, options.stacks)

    def _observe(self, recorder: Recorder, attach: bool) -> None:
        stacks = self.options.stacks
        watched = Watched(self._folder, recorder, self.cells, self._tid, stacks, attach)
        self._observers = Observers(watched)
        self._observers.start()

    def _install(self, recorder: Recorder, settings: WorkerSettings) -> None:
        for loader in registry.plugins(loader_plugins, "LOADER", "ioscope.loaders"):
            package = loader.package
            if optional.loaded(package) is not None:
                self._install_one(loader, recorder, settings)
            elif optional.installed(package):
                # The cell may import the library itself. It is watched until all of it is there.
                watcher = ImportWatcher(package, self._when_imported(loader, recorder, settings))
                watcher.start()
                self._watchers.append(watcher)

    def _when_imported(
        self, loader: Loader, recorder: Recorder, settings: WorkerSettings
    ) -> Callable[[], None]:
        return lambda: self._install_one(loader, recorder, settings)

    def _install_one(self, loader: Loader, recorder: Recorder, settings: WorkerSettings) -> None:
        try:
            loader.install(recorder, self._patches, settings)
        except Exception as error:
            log.warning("ioscope cannot record %s", loader.name, exc_info=True)
            self._gaps.append(Gap(f"loaders of {loader.name}", f"{type(error).__name__}: {error}"))

    def _halt_soon(self) -> None:
        """Called from inside the user's loop: end the recording without making the loop wait."""
        thread = threading.Thread(target=self._halt_early, name="ioscope-halt", daemon=True)
        thread.start()

    def _halt_early(self) -> None:
        self._early = True
        self._halt()

    def _halt(self) -> None:
        """Stop everything that records. Idempotent; a second caller waits for the first."""
        with self._halting:
            if self._halted:
                return
            self._halted = True
            self._end_ns = time.monotonic_ns()
            recorder = self.recorder
            if recorder is not None:
                recorder.active = False
            self._undo()
            if self._own_stacks is not None:
                self._own_stacks.stop()
            self._files = list(read_worker_files(self._folder))
            pids = {item.info.pid: item.info.worker for item in self._files}
            if recorder is not None:
                pids = {**recorder.worker_pids, **pids}
                self._tid = recorder.consumer_tid() or self._tid
            if self._observers is not None:
                self._observed = self._observers.stop(pids)
            if self._sampler is not None:
                try:
                    self._sampled = self._sampler.stop(pids, self._tid, self.cells)
                except Exception as error:
                    log.warning("ioscope: sampler gave nothing back", exc_info=True)
                    self._gaps.append(Gap("thread states, counters, stacks", str(error)))
            # Workers that end with the cell leave their last record after the sampler was asked.
            self._files = list(read_worker_files(self._folder))

    def _undo(self) -> None:
        if self._observers is not None and not self._halted:
            self._observers.stop({})
        for watcher in self._watchers:
            watcher.stop()
        self._patches.undo()

    def stop(
        self, ended_by: str | None = None, cell: Cell | None = None, ended_text: str = ""
    ) -> Profile:
        """End the recording and give the profile. Never raises for what went wrong meanwhile."""
        try:
            if self._timer is not None:
                self._timer.cancel()
            self._halt()
            return replace(self._profile(ended_by, cell), ended_text=ended_text)
        finally:
            self._clean_up()

    @property
    def forked(self) -> bool:
        """Whether this is a copy, in a child that the recorded code forked."""
        return os.getpid() != self._pid

    def forget(self) -> None:
        """Let go of the recording in such a child. Helper, threads and folder are its parent's."""
        if self.recorder is not None:
            self.recorder.active = False
        for watcher in self._watchers:
            watcher.stop()
        self._patches.undo()
        _free()

    def _profile(self, ended_by: str | None, cell: Cell | None) -> Profile:
        recorder = self.recorder
        if recorder is None:
            raise CaptureError("the profile was never started: call start() first")
        sampled, observed = self._sampled, self._observed
        parts = matched(recorder, self._files, self._end_ns)
        profile = Profile(
            label=self.options.label,
            created_utc=self._created.isoformat(timespec="seconds"),
            start_ns=self.start_ns,
            end_ns=self._end_ns,
            pid=recorder.pid,
            consumer_tid=self._tid,
            machine=machine(sampled.gpus),
            tier=sampled.tier,
            ended_by=ended_by,
            stopped_early=self._early,
            cell=cell,
            cells=self.cells.cells(),
            loaders=parts.loaders,
            epochs=recorder.closed_epochs(self._end_ns),
            batches=parts.batches,
            fetches=parts.fetches,
            workers=parts.workers,
            threads=sampled.threads,
            series=MappingProxyType(dict(sampled.series)),
            stacks=sampled.stacks,
            blocked=observed.blocked,
            files=observed.files,
            held_files=sampled.held_files,
            processes=sampled.processes,
            gc_pauses=observed.gc_pauses,
            transforms=observed.transforms,
            samples_again=observed.samples_again,
            block=sampled.block,
            not_measured=(
                *self._gaps,
                *recorder.gaps,
                *sampled.gaps,
                *observed.gaps,
                *parts.gaps,
            ),
        )
        return replace(
            with_details(profile),
            cost=Cost(
                sampler_cpu_s=sampled.sampler_cpu_s,
                stacks_cpu_s=sampled.stacks_cpu_s + observed.stacks_cpu_s,
                records_s=records_cost_s(len(profile.batches), len(profile.fetches)),
            ),
        )

    def _clean_up(self) -> None:
        with contextlib.suppress(Exception):
            self._undo()
        shutil.rmtree(self._folder, ignore_errors=True)
        _free()


def _free() -> None:
    """The next profile may begin."""
    global _recorder
    _recorder = None
    if _running.locked():
        _running.release()
