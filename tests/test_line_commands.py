"""`%ioscope compare` and `%ioscope tune` on the loader that the last profiled cell iterated."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import jupyter_ioscope as ioscope
from jupyter_ioscope import line_commands
from jupyter_ioscope.errors import ProfileFileError
from jupyter_ioscope.recording import Recording
from tests.trial_loaders import Sleeping

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def loader() -> Any:
    return DataLoader(Sleeping(2000, wait_s=0.002), batch_size=2)


@pytest.fixture(scope="module")
def recording(loader: Any) -> Recording:
    with ioscope.profile(stacks=False) as recorded:
        for number, _ in enumerate(loader):
            time.sleep(0.004)
            if number == 40:
                break
    return recorded


@pytest.mark.usefixtures("short_trials")
def test_a_recorded_loader_is_compared_with_its_step_and_its_prediction(
    loader: Any, recording: Recording
) -> None:
    known = {"loader": loader, "_ioscope": recording}
    found = line_commands.run("compare loader --toggles workers=1 --budget 2", known)
    assert any("stand-in for your step" in note for note in found.notes)
    assert found.predicted is not None
    assert found in recording.comparisons


def test_a_saved_profile_is_shown_by_its_name(tmp_path: Path, recording: Recording) -> None:
    path = tmp_path / "of a loop.ioscope.json"
    recording.save(path)
    found = line_commands.run(f"load '{path}'", {})
    assert found.profile == recording.profile
    with pytest.raises(ProfileFileError, match="there is no file"):
        line_commands.run("load nowhere.ioscope.json", {})


def test_help_names_the_magic_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    for name in line_commands.names():
        line_commands.run(f"{name} --help", {})
    told = capsys.readouterr().out
    assert "%%ioscope" in told
    assert "%%%" not in told


@pytest.mark.usefixtures("short_trials")
def test_another_step_is_taken_at_its_word(loader: Any, recording: Recording) -> None:
    known = {"loader": loader, "_ioscope": recording}
    found = line_commands.run("compare loader --toggles workers=1 --step 0 --budget 1", known)
    assert not any("stand-in for your step" in note for note in found.notes)
    assert found not in recording.comparisons


def test_a_loader_that_was_changed_since_is_another_one(loader: Any, recording: Recording) -> None:
    data = loader.dataset
    changed = (
        DataLoader(data, batch_size=4, sampler=loader.sampler),
        DataLoader(data, batch_size=2, shuffle=True),
        DataLoader(data, batch_size=2, sampler=loader.sampler, collate_fn=list),
        DataLoader(Sleeping(2000), batch_size=2),
        [1, 2, 3],
        None,
    )
    known = {"_ioscope": recording}
    assert line_commands._last_of(loader, known) is recording
    assert [line_commands._last_of(one, known) for one in changed] == [None] * len(changed)
    assert line_commands._last_of(loader, {}) is None
    assert line_commands._last_of(loader, {"_ioscope": "mine"}) is None
