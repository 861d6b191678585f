"""How many cores a process may use where several ranks of one job train on the machine."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from jupyter_ioscope.capture import cores
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _words
from jupyter_ioscope.trials import room
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggles import workers
from tests.builders import profile as made


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "_siblings", lambda: [1, 2, 3, 4])
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)


@pytest.mark.parametrize(
    ("said", "ranks"),
    [
        ({}, 1),
        ({"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "16"}, 4),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 2),
        ({"WORLD_SIZE": "16"}, 1),
        ({"SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, 4),
        ({"SLURM_STEP_TASKS_PER_NODE": "4,2"}, 1),
        ({"LOCAL_WORLD_SIZE": "many"}, 1),
    ],
)
def test_launchers_say_how_many_ranks_run_here(said: dict[str, str], ranks: int) -> None:
    assert cores.local_ranks(said) == ranks


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("ranks", "part"), [("", 8), ("4", 2), ("16", 1)])
def test_ranks_share_the_cores(ranks: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert cores.cores_per_rank() == part


@pytest.mark.usefixtures("eight_cores")
def test_ranks_bound_to_cores_of_their_own_take_none_of_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    own = {0: set(range(8)), 1: set(range(8))}
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: own.get(pid, {8 + pid}))
    assert cores.sharing_ranks() == 1
    assert cores.cores_per_rank() == 8


@pytest.mark.usefixtures("eight_cores")
def test_the_toggle_gives_each_rank_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    spec = LoaderSpec(object, [1, 2], 1, None, None)
    assert workers.apply(spec).num_workers == 2
    assert "2 cores (its part of them: 4 ranks train here)" in workers.refuse(
        spec.changed(num_workers=2)
    )


@pytest.mark.usefixtures("eight_cores")
def test_memory_has_room_for_the_workers_of_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory_bytes", lambda: 8 << 30)
    alone = room.room_for(None)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    shared = room.room_for(None)
    assert (alone.memory_bytes, shared.memory_bytes) == (8 << 30, 2 << 30)
    assert (shared.cores, shared.shm_bytes <= alone.shm_bytes // 2) == (2, True)


def test_the_advice_counts_the_ranks_of_the_profile() -> None:
    profile = made()
    assert _words.own_cores(Facts(profile)) == 4
    shared = replace(profile, machine=replace(profile.machine, ranks=2))
    assert _words.own_cores(Facts(shared)) == 2
    assert _words.cores_text(Facts(shared)) == "4 cores shared by 2 ranks"
