"""Comparisons of real loaders come to the verdict that is true, and say what they did."""

from __future__ import annotations

import itertools
import math
import re
import time
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.capture import cores
from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.trials.compare import Progress, compare
from tests.trial_loaders import Counting, Pictures, Sleeping, make_jpegs

pytestmark = pytest.mark.timeout(300)
FORK: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": "fork"}


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_ioscope.trials.toggles import workers

    monkeypatch.setattr(workers, "cores_per_rank", lambda: 4)


@pytest.mark.usefixtures("four_cores", "short_trials")
def test_workers_make_a_waiting_loader_faster() -> None:
    steps: list[Progress] = []
    at: list[float] = []

    def note(progress: Progress) -> None:
        steps.append(progress)
        at.append(time.monotonic())

    loader = DataLoader(Sleeping(wait_s=0.02), batch_size=2, shuffle=True)
    found = compare(loader, toggles=["workers"], budget_s=90, on_progress=note)
    assert found.verdict == "faster"
    assert found.ratio < 6  # four workers
    assert found.ratio_low > 1
    assert found.ratio_low < found.ratio < found.ratio_high
    assert found.same_data.verdict == "identical"
    assert "num_workers=4,  # was 0" in found.code
    assert (found.arms[0].label, found.arms[1].toggles) == ("as it is", ("workers",))
    assert found.pairs == len(found.trials) / 2 >= 4
    assert {trial.samples for trial in found.trials} == {found.trials[0].samples}
    assert all(arm.first_batch_s > 0 and arm.peak_memory_bytes > 0 for arm in found.arms)
    assert found.arms[1].peak_memory_bytes > found.arms[0].peak_memory_bytes
    assert min(b - a for a, b in itertools.pairwise(at)) >= 0.24
    assert steps[-1].state == "done"
    assert steps[-1].pairs == found.pairs
    assert steps[-1].ratio == found.ratio
    assert [s.fraction for s in steps] == sorted(s.fraction for s in steps)


@pytest.mark.usefixtures("short_trials")
def test_the_same_loader_twice_is_neither_faster_nor_slower() -> None:
    one, two = (DataLoader(Sleeping(), batch_size=4, shuffle=True) for _ in range(2))
    # How often it errs is tested with the statistics; here it must not, on any machine.
    found = compare(one, two, budget_s=4, alpha=1e-4)
    assert found.verdict in ("same", "undecided")
    assert found.ratio_low <= 1.05
    assert found.ratio_high >= 1 / 1.05
    assert found.code == ""


@pytest.mark.usefixtures("short_trials")
def test_a_slower_arm_is_called_slower_and_its_code_is_not_offered() -> None:
    slow = DataLoader(Sleeping(wait_s=0.02), batch_size=2)
    found = compare(DataLoader(Sleeping(), batch_size=2), slow, budget_s=90, label_b="slow")
    assert found.verdict == "slower"
    assert found.ratio < 0.7
    assert found.code == ""
    assert found.arms[1].label == "slow"


class Doubled(Sleeping):
    """The same samples with other contents."""

    def __getitem__(self, index: int) -> Any:
        row, index = super().__getitem__(index)
        return 2 * row + 1, index


@pytest.mark.usefixtures("short_trials")
def test_no_winner_is_declared_over_different_samples() -> None:
    found = compare(
        DataLoader(Sleeping(wait_s=0.02), batch_size=2),
        DataLoader(Doubled(), batch_size=2),
        budget_s=90,
    )
    assert found.same_data.verdict == "different"
    assert (found.verdict, found.code) == ("undecided", "")
    assert found.ratio > 1.3
    assert "no winner is declared" in found.notes[0]


@pytest.mark.usefixtures("four_cores")
def test_unshared_iterable_workers_do_not_win_by_repeating_samples() -> None:
    loader = DataLoader(Counting(400, shared=False), batch_size=4)
    found = compare(loader, toggles=["workers"], budget_s=4)
    assert found.verdict == "undecided"
    assert "get_worker_info" in found.same_data.text


@pytest.mark.usefixtures("short_trials")
def test_kept_workers_are_timed_over_whole_epochs() -> None:
    loader = DataLoader(Sleeping(16, 0.001), batch_size=4, **FORK)
    found = compare(loader, toggles=["persistent_workers"], budget_s=8)
    assert found.ratio > 1.2
    assert any("whole epochs" in note for note in found.notes)
    assert all(trial.samples % 16 == 0 for trial in found.trials)


def test_an_epoch_too_long_for_the_budget_is_said_not_guessed() -> None:
    loader = DataLoader(Sleeping(100_000, 0.001), batch_size=4, **FORK)
    found = compare(loader, toggles=["persistent_workers"], budget_s=5)
    assert any("too long to time" in note for note in found.notes)


def test_cold_files_are_evicted_before_each_trial_and_warm_ones_are_there(tmp_path: Path) -> None:
    paths = make_jpegs(tmp_path, number=24, size=(300, 200))
    one, two = (DataLoader(Pictures(paths, size=32), batch_size=2) for _ in range(2))
    warm = compare(one, two, budget_s=3)
    # how many of the files are read depends on the machine's pace
    assert re.match(r"warm: 100\s% of [1-9]\d? files", warm.cache_text), warm.cache_text
    cold = compare(one, two, budget_s=3, cache="cold")
    assert (cold.cache, warm.cache) == ("cold", "warm")
    evicted = r"evicted before each trial; at most 0\s% of [1-9]\d? files"
    assert re.search(evicted, cold.cache_text), cold.cache_text
    assert "of its speed with a warm cache" in cold.cache_text


def test_of_a_short_loader_only_first_epochs_are_cold(tmp_path: Path) -> None:
    paths = make_jpegs(tmp_path, number=6, size=(300, 200))
    one, two = (DataLoader(Pictures(paths, size=32), batch_size=2) for _ in range(2))
    found = compare(one, two, budget_s=2, cache="cold")
    assert {trial.samples for trial in found.trials} == {6}
    assert any("the first epoch of every run was timed" in note for note in found.notes)


def test_without_files_nothing_is_claimed_about_the_cache() -> None:
    one, two = (DataLoader(Sleeping(), batch_size=4) for _ in range(2))
    assert "nothing could be proven" in compare(one, two, budget_s=2).cache_text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"toggles": ["wrokers"]},
            r"'wrokers'.*draft_decode, .*persistent_workers, .*prefetch, .*workers",
        ),
        ({}, "b .* or toggles"),
        ({"b": DataLoader(Sleeping()), "toggles": ["workers"]}, "either b or toggles"),
        ({"b": [1]}, "b must be a torch DataLoader"),
        ({"toggles": ["workers"], "budget_s": 0}, "budget_s must be .* got 0"),
        ({"toggles": ["workers"], "budget_s": math.nan}, "budget_s must be .* got nan"),
        ({"toggles": ["workers"], "budget_s": "60"}, "budget_s must be .* got '60'"),
        ({"toggles": ["workers"], "cache": "hot"}, "cache must be 'warm' or 'cold', got 'hot'"),
    ],
)
def test_bad_input_is_named_with_its_value_and_what_to_do(
    arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(InputError, match=text):
        compare(DataLoader(Sleeping()), **arguments)


def test_a_toggle_that_does_not_apply_is_refused_before_anything_runs() -> None:
    steps: list[Progress] = []
    with pytest.raises(TrialError, match=r"'prefetch' does not apply: .* num_workers is 0"):
        compare(DataLoader(Sleeping()), toggles=["prefetch"], on_progress=steps.append)
    assert steps == []


@pytest.mark.usefixtures("four_cores")
def test_toggles_that_need_workers_apply_after_the_one_that_brings_them() -> None:
    loader = DataLoader(Sleeping(), batch_size=4)
    found = compare(loader, toggles=["prefetch", "workers"], budget_s=4)
    assert "num_workers=4" in found.code or found.verdict != "faster"
    assert dict(found.arms[1].settings)["prefetch_factor"] == "4"


def test_quota_of_the_cgroup_limits_usable_cores(tmp_path: Path) -> None:
    group = tmp_path / "sys" / "a" / "b"
    group.mkdir(parents=True)
    (tmp_path / "sys" / "a" / "cpu.max").write_text("150000 100000\n")
    (group / "cpu.max").write_text("max 100000\n")
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    assert cores.quota_cores(str(tmp_path / "sys"), str(tmp_path / "cgroup")) == 1.5
    assert cores.quota_cores(str(tmp_path / "none"), str(tmp_path / "cgroup")) is None
