"""torchdata's loader, whose worker loop and messages are its own, is recorded like torch's."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
stateful = pytest.importorskip("torchdata.stateful_dataloader")

from jupyter_ioscope.api import profile  # noqa: E402
from tests.loaders_under_test import Numbers, Stream  # noqa: E402

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # torchdata's own
]

FORK: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": "fork"}
KINDS: dict[str, dict[str, Any]] = {
    "no workers": {},
    "fork": FORK,
    "persistent": {**FORK, "persistent_workers": True},
    "spawn": {"num_workers": 1, "multiprocessing_context": "spawn"},
}


def values(batches: Any) -> list[Any]:
    return [
        [item.tolist() if isinstance(item, torch.Tensor) else item for item in batch]
        for batch in batches
    ]


def run(kind: str, dataset: Any) -> list[Any]:
    random.seed(7)
    torch.manual_seed(7)
    loader = stateful.StatefulDataLoader(dataset, batch_size=4, **KINDS[kind])
    epochs = 1 if kind == "spawn" else 2
    return [batch for _ in range(epochs) for batch in values(loader)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_batch_is_recorded_and_none_is_changed(kind: str) -> None:
    # workers deliver the same however they start, and forked ones do it seconds earlier
    expected = None if kind == "spawn" else run(kind, Numbers(24))
    with profile(stacks=False) as p:
        batches = run(kind, Numbers(24))
    assert expected is None or batches == expected
    assert len(p.batches) == len(batches)
    assert sum(batch.samples for batch in p.batches) == 4 * len(batches)
    assert not any("fetch records" in gap.what for gap in p.profile.not_measured)
    fetched = [(fetch.epoch, fetch.task) for fetch in p.profile.fetches]
    assert sorted(fetched) == sorted((batch.epoch, batch.task) for batch in p.batches)
    assert {fetch.tensors for fetch in p.profile.fetches} == {3}
    assert p.profile.loaders[0].class_name.endswith("StatefulDataLoader")
    assert not p.profile.loaders[0].workers_before_profile
    assert p.main_loader is not None


def test_a_stream_is_recorded_to_its_last_short_batch() -> None:
    with profile(stacks=False) as p:
        batches = run("fork", Stream(22))
    assert len(p.batches) == len(batches)
    assert sum(batch.samples for batch in p.batches) == 2 * 22


def test_a_loader_that_goes_on_where_another_was_is_recorded() -> None:
    first = stateful.StatefulDataLoader(Numbers(24), batch_size=4)
    next(iter(first))
    second = stateful.StatefulDataLoader(Numbers(24), batch_size=4)
    second.load_state_dict(first.state_dict())
    with profile(stacks=False) as p:
        assert len(list(second)) == 5
    assert len(p.batches) == len(p.profile.fetches) == 5
