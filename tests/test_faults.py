"""Whatever goes wrong in a cell stays the user's own, and nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from jupyter_ioscope import api  # noqa: E402
from jupyter_ioscope.errors import (  # noqa: E402
    CaptureError,
    InputError,
    IoscopeError,
    ProfileFileError,
)
from tests import leftovers  # noqa: E402
from tests.loaders_under_test import (  # noqa: E402
    Hangs,
    Killed,
    Numbers,
    Raises,
    Unpicklable,
    bad_collate,
)

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc"),
]


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # A temporary folder of its own, so that other programs' files are not taken for ours.
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    resource_tracker.ensure_running()
    with api.profile():  # the helper and the trials' thread stay for the kernel's life
        pass
    with leftovers.nothing_left_behind():
        yield


@pytest.fixture(autouse=True)
def torch_gives_up_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch waits so long for each worker of a loop that failed, with and without a profile."""
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.5)


def forked(dataset: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(
        dataset, **{"batch_size": 4, "num_workers": 2, "multiprocessing_context": "fork", **options}
    )


def failure(loader: Any, profiled: bool) -> tuple[str, api.Recording | None]:
    """(traceback as the user sees it, the recording) of a loop that fails."""
    recording = api.profile() if profiled else None
    try:
        if recording is None:
            for _ in loader:
                pass
        else:
            with recording:
                for _ in loader:
                    pass
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[1:]  # not this function's own line
        text = "".join([*traceback.format_list(frames), str(error)])
        # torch takes a batch that came early on another line than one that came in turn
        return re.sub(r"line \d+, in _next_data\n.*", "in _next_data", text), recording
    raise AssertionError("the loop did not fail")


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Raises(), batch_size=4),
        lambda: forked(Raises()),
        lambda: DataLoader(Numbers(), batch_size=4, collate_fn=bad_collate),
        lambda: forked(Unpicklable(), multiprocessing_context="spawn"),
    ],
    ids=["item", "item in a worker", "collate", "unpicklable under spawn"],
)
def test_the_users_exception_and_traceback_are_unchanged(make: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about the pickle before it raises
        plain, _ = failure(make(), profiled=False)
        profiled, recording = failure(make(), profiled=True)
    assert profiled == plain
    assert recording is not None
    assert recording.profile.ended_by is not None
    assert str(recording)  # the partial report


def test_a_block_without_a_loader_says_so() -> None:
    with api.profile() as p:
        sum(range(1000))
    assert "iterated" in p.diagnosis.headline
    assert p.diagnosis.findings == ()
    assert p.batches == ()


# torch raises in its handler of a child's death, wherever the process is: also where exceptions
# are ignored.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_worker_killed_mid_way_leaves_a_partial_report() -> None:
    recording = api.profile()
    # OSError: its last batch was being fetched
    with pytest.raises((RuntimeError, OSError, EOFError)), recording:
        for _ in forked(Killed(sleep_s=0.02), batch_size=1):
            pass
    # 13 is asked for when 9 were received: two workers hold two batches each
    assert 9 <= len(recording.batches) < 14
    assert str(recording)


@pytest.mark.parametrize("kind", ["hanging worker", "hanging item"])
def test_an_interrupt_ends_a_hanging_loop_and_keeps_what_was_recorded(kind: str) -> None:
    loader = forked(Hangs()) if kind == "hanging worker" else DataLoader(Hangs(), batch_size=4)
    recording = api.profile()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))

    def loop(batches: Any) -> None:
        for number, _ in enumerate(batches, start=1):
            if number == 3:  # the fourth never comes
                timer.start()

    with pytest.raises(KeyboardInterrupt), recording:
        loop(loader)
    timer.join()
    del loader
    assert recording.profile.ended_by == "KeyboardInterrupt"
    assert len(recording.batches) == 3
    assert str(recording)


def test_a_recording_inside_a_recording_is_refused_and_harms_neither() -> None:
    with api.profile() as outer:
        with pytest.raises(InputError, match="already being recorded"):
            api.profile().start()
        list(DataLoader(Numbers(8), batch_size=4))
    assert len(outer.batches) == 2


def test_without_a_place_for_temporary_files_a_sentence_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(CaptureError, match="set TMPDIR"):
        api.profile().start()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with api.profile(stacks=False) as p:  # nothing was kept of the first one
        list(DataLoader(Numbers(8), batch_size=4))
    assert len(p.batches) == 2


def test_a_failure_of_our_own_stops_the_recording_and_not_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jupyter_ioscope.capture.recorder import Recorder

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(Recorder, "wait_ends", broken)
    with api.profile() as p:
        batches = list(DataLoader(Numbers(8), batch_size=4))
    assert len(batches) == 2
    assert any("RuntimeError: bug" in gap.reason for gap in p.profile.not_measured)


def test_a_profile_that_cannot_be_made_does_not_take_the_place_of_the_users_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr("jupyter_ioscope.capture.profiler.Profiler._profile", broken)
    with pytest.raises(ZeroDivisionError), api.profile(stacks=False) as p:
        raise ZeroDivisionError
    with pytest.raises(IoscopeError, match=r"could not make the profile \(RuntimeError: bug"):
        str(p.diagnosis)


def kill_children(command: bytes) -> None:
    for child in leftovers.everything_below():
        if command in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)


def test_a_dead_helper_is_a_stated_gap_and_the_next_profile_has_a_new_one() -> None:
    with api.profile(stacks=False) as p:
        kill_children(b"sampler_process")
        list(DataLoader(Numbers(8, sleep_s=0.01), batch_size=4))
    assert len(p.batches) == 2
    assert p.profile.tier == "in_process"
    assert p.profile.not_measured
    with api.profile(stacks=False) as again:
        list(DataLoader(Numbers(8, sleep_s=0.02), batch_size=4))
    assert again.profile.tier != "in_process"


def test_py_spy_killed_or_missing_is_a_stated_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    with api.profile() as p:
        time.sleep(0.2)
        kill_children(b"py-spy")
        list(DataLoader(Numbers(8, sleep_s=0.02), batch_size=4))
    assert len(p.batches) == 2
    if p.stacks is None or p.stacks.source == "py-spy":
        assert any("stack" in gap.what.lower() for gap in p.profile.not_measured)


def test_saving_to_a_full_disk_says_so(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with api.profile(stacks=False) as p:
        list(DataLoader(Numbers(8), batch_size=4))
    script = (
        "import resource, signal, sys\n"
        "from jupyter_ioscope import api\n"
        "p = api.load(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "p.save(sys.argv[2])\n"
    )
    p.save(tmp_path / "good.json")
    target = tmp_path / "full.json"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "good.json"), str(target)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "ProfileFileError: cannot write" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"good.json", "temporary"}
    with pytest.raises(ProfileFileError):
        api.load(target)
