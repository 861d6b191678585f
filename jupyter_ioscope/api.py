"""The public functions: record, look, compare, tune, load, check storage, bench. Magic, command
line and buttons call these."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.arguments import (
    checked_bool,
    checked_call,
    checked_event,
    checked_names,
    checked_pause,
    kind,
)
from jupyter_ioscope.capture.profiler import CaptureOptions
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model import files
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.recording import Recording, last_recording, not_while_recording

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from jupyter_ioscope.model.bench import BenchResult
    from jupyter_ioscope.model.parts import Parts
    from jupyter_ioscope.model.storage import Baseline, BaselineCheck, Limits, StorageCheck
    from jupyter_ioscope.trials.compare import Progress

__all__ = [
    "Recording",
    "bench",
    "check_baseline",
    "check_storage",
    "compare",
    "compare_parts",
    "figure",
    "limits",
    "load",
    "profile",
    "save_baseline",
    "tune",
]


def profile(
    *,
    seconds: float | None = None,
    batches: int | None = None,
    rate_hz: float = 25.0,
    stacks: bool = True,
    label: str | None = None,
    block_trace: bool = False,
) -> Recording:
    """Record the loaders iterated in a `with` block.

    Args:
        seconds: stop recording after so many seconds; the block goes on.
        batches: stop recording after so many batches (25,000 without it); the block goes on.
        rate_hz: thread states and stacks per second and thread, 1 to 200.
        stacks: whether to sample stacks for the flame graph.
        label: a name for the report.
        block_trace: whether to trace the requests of block devices, too; takes rights on tracefs
            (root). Without them the report says so and lacks only that.

    Raises:
        InputError: an argument cannot be used, or another recording is running here.
    """
    return Recording(
        CaptureOptions(
            seconds=seconds,
            batches=batches,
            rate_hz=rate_hz,
            stacks=stacks,
            label=label or "",
            block_trace=block_trace,
        )
    )


def compare(
    a: Any,
    b: Any = None,
    toggles: Iterable[str] = (),
    cache: str = "warm",
    budget_s: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    step_s: float = 0.0,
    whole_cell: bool = False,
) -> Comparison:
    """Time two loaders, or one loader without and with toggles, against each other.

    Neither loader is changed; trials run in child processes where that is possible.

    Args:
        a: a torch DataLoader: arm A.
        b: another DataLoader: arm B; or leave it out and name `toggles`.
        toggles: names of optimisations that make arm B from `a`; a single name may stand alone.
        cache: "warm" or "cold" page cache.
        budget_s: about how long the trials may take, in seconds.
        on_progress: called with a `Progress` at most four times a second.
        cancel: an Event that ends the comparison when set.
        step_s: seconds that your loop spends with each batch; trials then pause as long.
        whole_cell: `a` was iterated in the last cell with %%ioscope, and every trial runs that
            cell itself, in a copy of this process, with the toggles applied to `a`.

    Raises:
        InputError: an argument cannot be used.
        TrialError: an arm failed, hung, or delivered nothing; the text says which and why.
    """
    from jupyter_ioscope.trials.compare import compare as run
    from jupyter_ioscope.trials.step import Step

    not_while_recording()
    checked_pause("step_s", step_s)
    _checked_watch(on_progress, cancel)
    picked = checked_names("toggles", toggles)
    if checked_bool("whole_cell", whole_cell):
        if b is not None or step_s:
            raise InputError("whole_cell runs the recorded cell with toggles: give no b, no step_s")
        recorded = last_recording()
        return recorded.compare(picked, cache, budget_s, on_progress, cancel, True, loader=a)
    return run(
        a,
        b,
        toggles=picked,
        cache=cache,
        budget_s=budget_s,
        on_progress=on_progress,
        cancel=cancel,
        step=Step(off_s=step_s),
    )


def compare_parts(
    loader: Any,
    toggles: Iterable[str],
    cache: str = "warm",
    budget_s: float = 120.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
    step_s: float = 0.0,
) -> Parts:
    """What each of several toggles brings alone, and all of them together.

    Args:
        loader: a torch DataLoader.
        toggles: names of two optimisations or more.
        cache, on_progress, cancel, step_s: as for `compare`.
        budget_s: about how long all comparisons together may take, in seconds.

    Raises:
        InputError: an argument cannot be used.
        TrialError: none of the toggles could be tried; the text says why.
    """
    from jupyter_ioscope.trials.parts import compare_parts as run
    from jupyter_ioscope.trials.step import Step

    not_while_recording()
    checked_pause("step_s", step_s)
    _checked_watch(on_progress, cancel)
    picked = checked_names("toggles", toggles)
    return run(loader, picked, cache, budget_s, on_progress, cancel, Step(off_s=step_s))


def tune(
    loader: Any,
    budget_s: float = 60.0,
    profile: Profile | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> Tuning:
    """Find the number of workers and of batches ahead that `loader` needs.

    A model ranks the settings, at most six are timed in child processes, and the best is compared
    with the loader as it is. The loader is not changed.

    Args:
        loader: a torch DataLoader.
        budget_s: about how long it may take, in seconds.
        profile: of the loop over this loader; its step then belongs to what is timed.
        on_progress: called with a `Progress` at most four times a second.
        cancel: an Event that ends the search when set.

    Raises:
        InputError: an argument cannot be used.
        TrialError: the loader failed in every setting.
    """
    from jupyter_ioscope.trials.tuner import tune as run

    not_while_recording()
    _checked_watch(on_progress, cancel)
    return run(loader, budget_s, profile, on_progress, cancel)


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a saved profile.

    Raises:
        InputError: the path is none.
        ProfileFileError: there is no such file, or it is foreign, damaged or of another format.
    """
    return Recording.of(*files.load_all(path))


def figure(of: Recording | Profile | Comparison | Tuning, name: str = "timeline") -> Any:
    """A plotly figure: every trial of a comparison with the intervals of both arms, or the heat map
    of a search; of a profile the figure of that `name`, see `Recording.figure`.

    Raises:
        InputError: `of` is something else, or there is no such figure.
        MissingPackageError: plotly is not installed.
    """
    if isinstance(of, Comparison):
        from jupyter_ioscope.views.figures import comparison_figure

        return comparison_figure(of)
    if isinstance(of, Tuning):
        from jupyter_ioscope.views.tuning import tuning_figure

        return tuning_figure(of)
    recording = Recording.of(of) if isinstance(of, Profile) else of
    if not isinstance(recording, Recording):
        raise InputError(f"there is no figure of {kind(of)}: give a profile, or a result")
    return recording.figure(name)


def check_storage(
    path: str | os.PathLike[str],
    quick: bool = True,
    profile: Profile | Recording | None = None,
    silence_s: float | None = None,
    on_step: Callable[[str], None] | None = None,
) -> StorageCheck:
    """Measure the place where data lives: healthy, degraded or dangerous, and why.

    A folder is measured in a private folder inside it, which is removed again; a file is only read.
    All requests are made by another process, so that a device that hangs holds up nothing here.

    Args:
        path: a folder, a file, or an fsspec address (which is described, not measured).
        quick: at most 3 s and 64 MiB written where storage answers; else about 20 s and 1 GiB.
        profile: of a loader; the result then says what the numbers mean for it.
        silence_s: seconds without an answer after which the storage counts as hanging.
        on_step: called with how long it will take, then with each step, as sentences.

    Raises:
        InputError: the place cannot be measured (no space, no permission, no file, a pipe, ...).
    """
    from jupyter_ioscope.storage.health import check

    not_while_recording()
    checked_call("on_step", on_step)
    quick = checked_bool("quick", quick)
    return check(path, quick, _profile_of(profile), silence_s, on_step)


def bench(
    name: str,
    target: Any,
    budget_s: float = 30.0,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: threading.Event | None = None,
) -> BenchResult:
    """Which way is faster on your own file or sample, and what it gets wrong.

    Everything runs in processes of its own. Files are only read; what is converted goes to a
    temporary folder, which is removed again.

    Args:
        name: which bench; `%ioscope bench` lists them.
        target: a path, or an object (a sample, a loader, a function, ...), as the bench wants it.
        budget_s: about how long it may take, in seconds. Ways that take too much of it even to be
            tried are left out; of the others four rounds are made in any case.
        on_progress: called with a `Progress` at most four times a second.
        cancel: an Event that ends the bench when set.

    Raises:
        InputError: there is no such bench, or the target cannot be used; one sentence says why.
        TrialError: the bench's process failed or was cancelled, or another comparison is running.
    """
    from jupyter_ioscope.benches._run import bench as run

    not_while_recording()
    _checked_watch(on_progress, cancel)
    return run(name, target, budget_s, on_progress, cancel)


def limits(profile: Profile | Recording | None = None) -> Limits:
    """What container, control groups and ulimits allow, and what that does to a loader.

    Args:
        profile: of a loader; the advice then counts what its loop, workers and batches took.
    """
    from jupyter_ioscope.capture.cores import sharing_ranks
    from jupyter_ioscope.storage.limits import limits as read

    return read(_profile_of(profile), ranks=sharing_ranks())


def save_baseline(
    path: str | os.PathLike[str],
    file: str | os.PathLike[str] = "ioscope-baseline.json",
    *,
    seconds: float = 0.5,
    repeats: int = 5,
    size_bytes: int = 256 << 20,
    engine: str = "",
    block_trace: bool = False,
    on_step: Callable[[str], None] | None = None,
) -> Baseline:
    """Measure a folder's storage with fio, or with our own engine, and save the result.

    Args:
        path: the folder; a private folder inside it is used and removed again.
        file: where the baseline is saved, as JSON.
        seconds: of one run of one job.
        repeats: runs of each job; the median counts.
        size_bytes: of the test file, whole MiB.
        engine: "fio", "own", or "" for fio where it is installed.
        block_trace: whether to measure the device's own latencies, too; takes rights on tracefs.
        on_step: called with how long it will take, then with each step, as sentences.

    Raises:
        InputError: it cannot be measured or saved; one sentence says why.
    """
    from jupyter_ioscope.storage import baseline, baseline_file

    not_while_recording()
    checked_call("on_step", on_step)
    baseline_file.checked_target(file)  # before anything is measured
    traced = checked_bool("block_trace", block_trace)
    options = baseline.Options(seconds, repeats, size_bytes, engine, block_trace=traced)
    found = baseline.measure(path, options, on_step)
    baseline_file.write(found, file)
    return found


def check_baseline(
    path: str | os.PathLike[str],
    file: str | os.PathLike[str] = "ioscope-baseline.json",
    *,
    seconds: float = 0.5,
    repeats: int = 5,
    size_bytes: int = 256 << 20,
    engine: str = "",
    block_trace: bool = False,
    p99_s: tuple[float, float] = (12e-3, 15e-3),
    loss: tuple[float, float] = (0.05, 0.08),
    on_step: Callable[[str], None] | None = None,
) -> BaselineCheck:
    """Measure a folder's storage again and compare it with a saved baseline.

    Args:
        path, file, seconds, repeats, size_bytes, engine, block_trace, on_step: as for
            `save_baseline`.
        p99_s: 99th percentile of small random requests that warns, and that is degraded.
        loss: loss of bandwidth, as a fraction, that warns, and that is degraded.

    Raises:
        InputError: it cannot be measured, the baseline cannot be read, or the two were not measured
            alike; one sentence says why.
    """
    from jupyter_ioscope.storage import baseline, baseline_check, baseline_file

    not_while_recording()
    checked_call("on_step", on_step)
    name = baseline_file.checked_name(file)
    before = baseline_file.read(name)
    thresholds = baseline_check.thresholds_of(p99_s, loss)
    traced = checked_bool("block_trace", block_trace)
    options = baseline.Options(seconds, repeats, size_bytes, engine, block_trace=traced)
    baseline_check.refuse_unlike(before, baseline.known_before(options), only_known=True)
    now = baseline.measure(path, options, on_step)
    return baseline_check.compare(before, now, name, thresholds)


def _checked_watch(on_progress: object, cancel: object) -> None:
    checked_call("on_progress", on_progress)
    checked_event("cancel", cancel)


def _profile_of(value: Profile | Recording | None) -> Profile | None:
    found = value.profile if isinstance(value, Recording) else value
    if found is not None and not isinstance(found, Profile):
        raise InputError(f"profile is {kind(found)}: give what ioscope.load() or %%ioscope gave")
    return found
