"""The tuner finds what a real loader needs, proves it, and leaves a good loader alone."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.model.prediction import Predicted, Setting
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.tuning import Tuning
from jupyter_ioscope.trials import tuner
from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Watch
from jupyter_ioscope.trials.profiled import profiled
from jupyter_ioscope.trials.progress import Progress
from jupyter_ioscope.trials.room import Room, free_memory_bytes
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.step import Step
from jupyter_ioscope.trials.tuner import _Tuner, step_of, tune, with_setting
from tests import builders
from tests.leftovers import nothing_left_behind
from tests.trial_loaders import Raising, Sleeping, random_states

pytestmark = [pytest.mark.timeout(400), pytest.mark.second]


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the budget is for the pairs: a busy machine may need it, an idle one ends before."""
    monkeypatch.setattr(tuner, "_MOST_RUN_S", 0.3)
    monkeypatch.setattr(tuner, "_PROFILE_PART", 0.04)


@pytest.mark.usefixtures("short_trials", "short_search")
def test_a_loader_that_waits_gets_workers_and_the_pairs_bear_it_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jupyter_ioscope.trials.toggles.pin_memory.accelerator", lambda: True)
    steps: list[Progress] = []
    loader = DataLoader(Sleeping(2000, wait_s=0.02), batch_size=2)
    states = random_states()
    found = tune(loader, budget_s=45, on_progress=steps.append)
    assert found.current == Setting(0, 2)
    assert found.best.workers >= 3
    assert found.comparison is not None
    assert found.comparison.verdict == "faster"
    assert found.comparison.same_data.verdict == "identical"
    assert 2 <= len(found.tried) <= 6
    assert found.tried[0].setting == found.current
    assert f"num_workers={found.best.workers},  # was 0" in found.code
    assert len(found.predicted) > 12
    assert all(row.low <= row.samples_per_s <= row.high for row in found.predicted)
    assert steps[-1].state == "done"
    assert any(note.startswith("pin_memory was not searched") for note in found.notes)
    assert loader.num_workers == 0
    assert random_states() == states


def test_a_loader_that_keeps_up_with_its_step_is_left_alone() -> None:
    loader = DataLoader(Sleeping(2000, wait_s=0.001), batch_size=4, num_workers=1)
    with ioscope.profile(stacks=False) as recording:
        for number, _ in enumerate(loader):
            time.sleep(0.03)
            if number == 40:
                break
    step = step_of(recording.profile)
    assert 0.029 < step.off_s < 0.5  # a busy machine wakes sleepers late
    assert step.cpu_s < 0.01
    found = tune(loader, budget_s=8, profile=recording.profile)
    assert not found.changed or found.best.workers <= 1
    assert any("stand-in for your step" in note for note in found.notes)


@pytest.mark.alone  # how soon it ends is timed
@pytest.mark.usefixtures("short_search", "own_temporary_folder")
def test_cancelling_leaves_nothing_and_tells_what_was_tried() -> None:
    cancel = threading.Event()
    found: list[Tuning] = []
    loader = DataLoader(Sleeping(4000), batch_size=4)

    def stop(progress: Progress) -> None:
        if progress.text.startswith("timing ") and "no workers" not in progress.text:
            cancel.set()  # the loader as it is was timed before

    def work() -> None:
        found.append(tune(loader, budget_s=100, cancel=cancel, on_progress=stop))

    compare(loader, loader, budget_s=0.1)  # starts what is kept
    with nothing_left_behind():
        thread = threading.Thread(target=work)
        thread.start()
        assert cancel.wait(80)
        thread.join(15)  # of the minute and more that would be left
        assert not thread.is_alive()
    assert found[0].cancelled
    assert found[0].tried[0].setting == found[0].current


class TellingTemporary(Sleeping):
    """Writes down where temporary files of its process go."""

    def __init__(self, path: str) -> None:
        super().__init__(40, 0.0)
        self.path = path

    def __getitem__(self, index: int) -> Any:
        Path(self.path).write_text(tempfile.gettempdir())
        return super().__getitem__(index)


def test_what_a_profile_in_a_child_leaves_when_killed_is_in_the_folder_that_is_removed(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    spec = spec_of(DataLoader(TellingTemporary(str(told)), batch_size=4))
    with Isolation() as isolation:
        arguments = (spec, 1, 0.1, 2, f"{isolation.folder}/p.ioscope.json", Step())
        isolation.run(Job("A", profiled, arguments, needs_child=True), Watch(20.0))
        assert told.read_text().startswith(f"{isolation.folder}/")
    assert tempfile.gettempdir() != told.read_text()


@pytest.mark.usefixtures("short_search", "own_temporary_folder", "short_trials")
def test_cancelling_the_pairs_at_the_end_keeps_what_was_tried() -> None:
    cancel = threading.Event()
    loader = DataLoader(Sleeping(4000, wait_s=0.02), batch_size=2)

    def stop(progress: Progress) -> None:
        if "comparing the samples" in progress.text:
            cancel.set()

    found = tune(loader, budget_s=20, cancel=cancel, on_progress=stop)
    assert found.cancelled
    assert found.best.workers > 0
    assert len(found.tried) > 1


def epochs(workers: int, start_ms: float, batches: int = 20) -> Profile:
    return builders.profile(workers, epochs=4, batches=batches, start_ms=start_ms)


@pytest.mark.parametrize(
    ("profile", "keep"),
    [
        (epochs(2, 300.0), True),
        (epochs(2, 1.0, 100), False),
        (epochs(0, 300.0), False),
        (None, False),
    ],
)
def test_workers_are_kept_where_a_profile_shows_what_their_starts_cost(
    profile: Profile | None, keep: bool
) -> None:
    spec = spec_of(DataLoader(Sleeping(), num_workers=2))
    made = _Tuner(cast(Runner, None), spec, 10.0, profile)
    assert made._restarts_cost(Setting(2)) is keep
    assert not made._restarts_cost(Setting(0))
    changed = with_setting(spec, Setting(2), keep)
    assert changed.persistent_workers is keep
    assert ("persistent_workers=True" in code_of(spec, changed)) is keep


def test_the_prediction_is_that_of_the_best_against_the_loader_as_it_is() -> None:
    made = _Tuner(cast(Runner, None), spec_of(DataLoader(Sleeping())), 10.0, None)
    best = Setting(2)
    made.predicted = (Predicted(Setting(0), 50, 40, 62.5), Predicted(best, 100, 100, 100))
    told = made._foretold(best)
    assert told is not None
    assert (told.ratio, told.low, told.high) == pytest.approx((2.0, 1.6, 2.5))
    assert made._foretold(Setting(8)) is None


def test_a_loader_that_fails_is_an_error_with_its_own_words() -> None:
    with pytest.raises(TrialError, match="sample 20"):
        tune(DataLoader(Raising(400), batch_size=4), budget_s=6)


@pytest.mark.parametrize("budget", [0, -3, float("nan"), "ten", None, True])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(InputError, match="budget_s"):
        tune(DataLoader(Sleeping(8)), budget_s=budget)


def test_only_data_loaders_are_tuned() -> None:
    with pytest.raises(InputError, match="DataLoader"):
        tune([1, 2, 3])


def test_settings_that_memory_has_no_room_for_are_refused_with_numbers() -> None:
    room = Room(
        4, memory_bytes=8 << 30, shm_bytes=64 << 20, worker_bytes=1 << 30, batch_bytes=4 << 20
    )
    assert room.most_workers == 4
    assert room.refuses(Setting(2, 2)) == ""
    assert "shared memory" in room.refuses(Setting(4, 4))
    assert "free" in Room(4, 1 << 30, 1 << 40, 400 << 20, 0).refuses(Setting(2, 2))
    assert free_memory_bytes() > 1 << 20


def test_the_step_of_a_profile_is_split_into_cpu_and_the_rest() -> None:
    step = step_of(builders.profile(workers=2, step_ms=8.0))
    assert step.cpu_s + step.off_s == pytest.approx(0.008, rel=0.1)
    assert step_of(builders.empty_profile()) == Step()
