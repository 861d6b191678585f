"""Trials end as they should, whatever the loader does, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials import compare as compare_module
from jupyter_ioscope.trials import runner
from jupyter_ioscope.trials.compare import Progress, compare
from jupyter_ioscope.trials.crashes import how_it_ended, worker_gone
from jupyter_ioscope.trials.delivery import Limit
from jupyter_ioscope.trials.forker import forker
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggles._pil_draft import DraftDecode
from tests.bench import leaks
from tests.leftovers import nothing_left_behind
from tests.trial_loaders import (
    Hanging,
    Hoarding,
    KillingWorker,
    Local,
    Multiplying,
    Raising,
    Sleeping,
    random_states,
)

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("short_trials"),
    pytest.mark.skipif(sys.platform != "linux", reason="forked children need Linux"),
]
FORK: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": "fork"}


@pytest.fixture(autouse=True)
def clean(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    tmp_path_factory.getbasetemp()  # not within the folder that is removed below
    forker()  # it stays for the life of the process
    with tempfile.TemporaryDirectory() as folder:  # short: sockets lie in it
        monkeypatch.setattr(tempfile, "tempdir", folder)
        with nothing_left_behind(patience_s=30):
            yield
        # Sockets of workers that were killed would lie here (libraries keep other things).
        assert [name for name in os.listdir(folder) if name.startswith("pymp")] == []


@pytest.mark.parametrize("workers", [{}, FORK])
def test_an_arm_that_raises_is_named_with_its_own_words(workers: dict[str, Any]) -> None:
    bad = DataLoader(Raising(), batch_size=4, **workers)
    with pytest.raises(TrialError, match=r"arm B failed: LookupError: .*<b>broken</b>") as caught:
        compare(DataLoader(Sleeping(), batch_size=4), bad, budget_s=5)
    assert "in __getitem__" in str(caught.value.__cause__)


@pytest.mark.parametrize("workers", [{}, FORK])
def test_an_arm_that_hangs_is_ended(
    workers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_module, "SILENCE_S", 1.5)
    with pytest.raises(
        TrialError, match=r"arm [AB] hangs: it gave no batch for 1\.5.*interrupt it"
    ):
        compare(DataLoader(Hanging(), batch_size=4, **workers), toggles=["workers"], budget_s=5)


@pytest.mark.parametrize("workers", [{}, FORK])
def test_an_arm_that_takes_too_much_memory_is_stopped_before_the_machine_runs_out(
    workers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "memory_limit_bytes", lambda: 700_000_000)
    with (
        nothing_left_behind(),
        pytest.raises(TrialError, match=r"arm B was stopped: its processes held .* fewer workers"),
    ):
        compare(
            DataLoader(Sleeping(), batch_size=4),
            DataLoader(Hoarding(), batch_size=4, **workers),
            budget_s=20,
        )


def test_a_killed_worker_is_reported() -> None:
    loader = DataLoader(KillingWorker(), batch_size=4)
    with pytest.raises(
        TrialError, match=r"arm B failed: .*worker .*(killed by signal: Killed|exited unex)"
    ):
        compare(loader, toggles=["workers"], budget_s=5)


class Exiting(Sleeping):
    def __getitem__(self, index: int) -> Any:
        os._exit(3)


def test_an_arm_whose_process_vanishes_is_reported() -> None:
    with pytest.raises(
        TrialError, match=r"arm A failed: its process ended .*exit status 3.*os\._exit"
    ):
        compare(DataLoader(Exiting()), DataLoader(Sleeping()), budget_s=5)


@pytest.mark.parametrize(
    ("number", "does"),
    [(signal.SIGSEGV, "faulthandler"), (signal.SIGKILL, "out of memory"), (signal.SIGBUS, "shm")],
)
def test_what_to_do_about_a_crash_is_said(number: signal.Signals, does: str) -> None:
    text = how_it_ended(int(number))
    assert text.startswith(f"was killed by {number.name}")
    assert does in text
    told = f"DataLoader worker (pid 7) is killed by signal: {signal.strsignal(number)}. "
    of_worker = worker_gone(f"DataLoader worker (pid(s) 7) exited unexpectedly ({told})")
    assert of_worker.startswith(f"a worker was killed by signal: {signal.strsignal(number)}")
    assert does in of_worker


def test_a_worker_that_ends_itself_is_told_and_other_errors_are_left_alone() -> None:
    told = "DataLoader worker (pid 7) exited unexpectedly with exit code 3. Details are lost"
    assert worker_gone(told).startswith("a worker exited unexpectedly (exit status 3): something")
    assert worker_gone("DataLoader worker is fine") == ""


def test_an_empty_loader_is_reported() -> None:
    empty = DataLoader(Sleeping(3), batch_size=4, drop_last=True)
    with pytest.raises(TrialError, match="gave no batch"):
        compare(empty, DataLoader(Sleeping(3), batch_size=2, drop_last=True), budget_s=3)


@pytest.mark.timeout(300)  # a process of its own, and many more
def test_ten_comparisons_cancelled_at_random_moments_leave_nothing() -> None:
    found = leaks.measure(quick=True)
    assert (found["runs"], found["left"]) == (10, {})
    assert found["slowest_end_s"] < 15.0  # 0.2 s where nothing else runs


def test_cancelling_after_a_pair_keeps_what_was_measured() -> None:
    cancel = threading.Event()

    def watch(progress: Progress) -> None:
        if progress.pairs >= 1:
            cancel.set()

    one, two = DataLoader(Sleeping(), 4), DataLoader(Sleeping(), 4)
    found = compare(one, two, budget_s=8, cancel=cancel, on_progress=watch)
    assert found.cancelled
    assert (found.verdict, found.pairs) == ("undecided", 1)
    assert found.ratio > 0


def test_an_exception_in_the_callers_callback_ends_the_trial() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.state == "running":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(
            DataLoader(Sleeping(), 4), DataLoader(Sleeping(), 4), budget_s=8, on_progress=interrupt
        )


def test_the_users_loader_and_random_states_are_untouched() -> None:
    generator = torch.Generator().manual_seed(5)
    loader = DataLoader(Sleeping(), 4, shuffle=True, generator=generator)
    attributes = dict(vars(loader))

    before = random_states(), generator.get_state().tolist()
    compare(loader, toggles=["workers"], budget_s=4)
    assert (random_states(), generator.get_state().tolist()) == before
    assert vars(loader) == attributes


class ReadsOn(Sleeping):
    """Reads from one handle that was opened with the dataset, wherever that stands."""

    def __init__(self, path: Path) -> None:
        super().__init__(length=64)
        self.file = path.open("rb", buffering=0)

    def __getitem__(self, index: int) -> int:
        return len(self.file.read(8))


def test_the_position_of_an_open_file_stays_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))
    dataset = ReadsOn(path)
    with dataset.file as file:
        file.seek(16)
        compare(DataLoader(dataset, batch_size=8), toggles=["workers=1"], budget_s=1)
        assert file.tell() == 16


def test_trials_started_from_a_short_lived_thread_survive_it() -> None:
    found: list[Any] = []
    one, two = DataLoader(Sleeping(), 4), DataLoader(Sleeping(), 4)
    thread = threading.Thread(target=lambda: found.append(compare(one, two, budget_s=4)))
    thread.start()
    thread.join()
    assert found[0].isolation == "forked child"


def test_a_second_comparison_at_the_same_time_is_refused() -> None:
    said: list[str] = []

    def again(progress: Progress) -> None:
        if progress.state == "running" and not said:
            with pytest.raises(TrialError, match="another comparison is running"):
                compare(DataLoader(Sleeping()), DataLoader(Sleeping()))
            said.append("refused")

    compare(DataLoader(Sleeping(), 4), DataLoader(Sleeping(), 4), budget_s=3, on_progress=again)
    assert said == ["refused"]


def test_openmp_used_before_the_fork_does_not_hang_the_child() -> None:
    # In a process of its own, so that OpenMP's threads are certain to run there.
    program = (
        "import torch; torch.set_num_threads(4); torch.randn(4_000_000).sum()\n"
        "torch.ones(500, 500) @ torch.ones(500, 500)\n"
        "from torch.utils.data import DataLoader\n"
        "from tests.trial_loaders import Multiplying\n"
        "from jupyter_ioscope.trials.compare import compare\n"
        "one, two = (DataLoader(Multiplying(400, 0.001), 4) for _ in range(2))\n"
        "print(compare(one, two, budget_s=3).isolation)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout == "forked child\n", done.stderr
    assert Multiplying(1, 0.0)[0][1] == 0


@pytest.fixture
def cuda_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)


@pytest.mark.usefixtures("cuda_initialised")
def test_with_cuda_initialised_trials_run_in_a_spawned_process() -> None:
    spec = spec_of(DataLoader(Sleeping(100, 0.0), batch_size=4))
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=60)
        assert runner.deliver("A", spec, Limit(samples=40)).samples == 40
        assert isolation.rung == "spawned process"
        assert "CUDA is initialised" in isolation.text


@pytest.mark.usefixtures("cuda_initialised")
def test_a_change_of_a_whole_process_is_never_made_in_the_kernel() -> None:
    spec = spec_of(DataLoader(Local(), 4)).changed(in_child=(DraftDecode(8, 8),))
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=60)
        with pytest.raises(TrialError, match="arm B: this toggle changes a library"):
            runner.deliver("B", spec, Limit(samples=4))


@pytest.mark.usefixtures("cuda_initialised")
def test_what_cannot_be_pickled_runs_in_the_kernel_and_keeps_random_states() -> None:
    loader = DataLoader(Local(400, 0.02), batch_size=2, shuffle=True)
    before = random_states()
    found = compare(loader, toggles=["workers=4"], budget_s=6)
    assert found.isolation == "in the kernel"
    assert "cannot be pickled" in found.isolation_text
    assert found.ratio > 1.2  # about four where nothing else runs
    assert random_states() == before


@pytest.mark.usefixtures("cuda_initialised")
def test_a_hang_in_a_worker_is_ended_in_the_kernel_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class LocalHanging(Local, Hanging):
        pass

    monkeypatch.setattr(compare_module, "SILENCE_S", 1.5)
    data = LocalHanging()
    with pytest.raises(TrialError, match="arm A hangs"):
        compare(DataLoader(data, batch_size=4, **FORK), toggles=["prefetch"], budget_s=5)
