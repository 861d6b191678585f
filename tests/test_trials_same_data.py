"""Whether both arms deliver the same samples, with real loaders in real children."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Sampler

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.model.comparison import SameData
from jupyter_ioscope.trials.delivery import Delivered, Limit
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.same_data import same_data
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from tests.trial_loaders import Augmented, Counting, Losing, Sleeping

pytestmark = [pytest.mark.timeout(240), pytest.mark.beside]
DATA = Sleeping(48, 0.0)


def check(a: Any, b: Any = None, toggled: bool = True, **changes: Any) -> SameData:
    spec: LoaderSpec = spec_of(a)
    other = spec_of(b) if b is not None else spec.changed(**changes)
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=20)
        return same_data(runner.deliver, spec, other, toggled)


def test_shuffled_samples_are_identical_at_any_number_of_workers() -> None:
    found = check(DataLoader(DATA, 4, shuffle=True), num_workers=2)
    assert (found.verdict, found.samples_compared) == ("identical", 48)
    assert found.text.startswith("All 48 samples of an epoch")


def test_another_batch_size_delivers_the_same_samples() -> None:
    found = check(DataLoader(DATA, 4), DataLoader(DATA, 7), toggled=False)
    assert found.verdict == "identical"


def test_delivery_out_of_order_is_not_a_difference() -> None:
    assert check(DataLoader(DATA, 4, num_workers=2), in_order=False).verdict == "identical"


def test_other_contents_are_different_and_the_text_says_what() -> None:
    class Shifted(Sleeping):
        def __getitem__(self, index: int) -> Any:
            return torch.full((8,), 48.0 - index), index

    found = check(DataLoader(DATA, 4), DataLoader(Shifted(48, 0.0), 4), toggled=False)
    assert found.verdict == "different"
    assert "of their range on average" in found.text


def test_slightly_other_values_are_close_with_the_largest_difference() -> None:
    class Rounded(Sleeping):
        def __getitem__(self, index: int) -> Any:
            values = torch.arange(8) * 10.0 + index
            values[3] += 0.5
            return values, index

    class Plain(Rounded):
        def __getitem__(self, index: int) -> Any:
            return torch.arange(8) * 10.0 + index, index

    found = check(DataLoader(Plain(48, 0), 4), DataLoader(Rounded(48, 0), 4), toggled=False)
    assert (found.verdict, found.max_difference) == ("close", 0.5)


def test_another_label_is_never_close() -> None:
    class Mislabelled(Sleeping):
        def __getitem__(self, index: int) -> Any:
            values, label = super().__getitem__(index)
            return values, label + (index == 9)

    found = check(DataLoader(DATA, 4), DataLoader(Mislabelled(48, 0.0), 4), toggled=False)
    assert found.verdict == "different"
    assert "sample 9" in found.text


def test_another_shape_is_named() -> None:
    class Longer(Sleeping):
        def __getitem__(self, index: int) -> Any:
            return torch.full((9,), float(index)), index

    found = check(DataLoader(DATA, 4), DataLoader(Longer(48, 0.0), 4), toggled=False)
    assert found.verdict == "different"
    assert "float32 8 " in found.text.replace(";", " ")
    assert "float32 9 " in found.text.replace(";", " ")


def test_another_order_is_different_for_two_loaders() -> None:
    reverse = DataLoader(DATA, 4, sampler=list(range(47, -1, -1)))
    found = check(DataLoader(DATA, 4), reverse, toggled=False)
    assert found.verdict == "different"
    assert "in another order" in found.text


class Unseeded(Sampler[int]):
    """Draws from the system's entropy: no seed reaches it."""

    def __iter__(self) -> Iterator[int]:
        import random

        return iter(random.SystemRandom().sample(range(48), 48))

    def __len__(self) -> int:
        return 48


def test_an_order_that_cannot_be_seeded_is_not_called_different() -> None:
    found = check(DataLoader(DATA, 4, sampler=Unseeded()), num_workers=1)
    assert found.verdict == "not_checked"


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 1)])
def test_random_contents_are_compared_by_index_and_shape_only(before: int, after: int) -> None:
    found = check(DataLoader(Augmented(48, 0.0), 4, num_workers=before), num_workers=after)
    assert found.verdict == "not_checked"
    assert "drawn at random" in found.text
    assert "samples by index, shapes and types agree" in found.text


def test_contents_that_no_seed_repeats_are_told_apart_from_seeded_ones() -> None:
    class Unrepeatable(Sleeping):
        def __getitem__(self, index: int) -> Any:
            import random

            return torch.full((8,), random.SystemRandom().random() * 1e6), index

    found = check(DataLoader(Unrepeatable(48, 0.0), 4), prefetch_factor=None)
    assert found.verdict == "not_checked"
    assert "without a seed, or the data change meanwhile" in found.text


def test_what_differs_late_is_not_taken_for_random() -> None:
    class Late(Sleeping):
        def __getitem__(self, index: int) -> Any:
            return torch.full((8,), 1000.0 if index == 40 else float(index)), index

    found = check(DataLoader(DATA, 4), DataLoader(Late(48, 0.0), 4), toggled=False)
    assert found.verdict == "different"


def test_random_contents_under_the_same_workers_are_identical_because_the_seed_is() -> None:
    found = check(DataLoader(Augmented(48, 0.0), 4, num_workers=1), prefetch_factor=4)
    assert found.verdict == "identical"


def test_an_iterable_dataset_that_is_not_shared_out_delivers_twice() -> None:
    found = check(DataLoader(Counting(40, shared=False), 4), num_workers=2)
    assert found.verdict == "different"
    assert "2 times" in found.text
    assert "get_worker_info" in found.text


def test_an_iterable_dataset_that_is_shared_out_is_identical_in_another_order() -> None:
    found = check(DataLoader(Counting(40, shared=True), 4), num_workers=2)
    assert (found.verdict, found.samples_compared) == ("identical", 40)
    assert "take turns" in found.text


@pytest.mark.parametrize(("shards", "verdict"), [(4, "not_checked"), (1, "different")])
def test_the_start_of_a_stream_cut_otherwise_is_no_difference(shards: int, verdict: str) -> None:
    class Stream(Counting):
        num_shards = 1

    class Cut(Stream):
        num_shards = shards

    def deliver(arm: str, spec: LoaderSpec, limit: Limit, reseed: int | None) -> Delivered:
        rows = [f"{arm}{number}" for number in range(8)]
        forms = [f"form of {arm}"] * 8
        return Delivered([], 8, False, True, forms, rows, rows, rows, "", [])

    one, two = (spec_of(DataLoader(kind(40, True), 4, num_workers=2)) for kind in (Stream, Cut))
    assert same_data(deliver, one, two, True).verdict == verdict


def test_a_toggle_that_loses_samples_is_an_error_that_names_the_arm() -> None:
    with pytest.raises(TrialError, match=r"arm B yields fewer samples than A .* 26 against 40"):
        check(DataLoader(Losing(40, shared=True), 4), num_workers=2)


def test_endless_iterables_are_cut_and_duplicates_still_found() -> None:
    class Endless(Counting):
        def __iter__(self) -> Iterator[Any]:
            return (torch.tensor([n, n]) for n in itertools.count())

    found = check(DataLoader(Endless(1, shared=False), 50), num_workers=2)
    assert found.verdict == "different"
    assert "up to 2 times" in found.text


def test_ragged_batches_are_compared_as_batches() -> None:
    def packed(items: list[Any]) -> Any:
        return {"all": torch.cat([values[: 1 + label % 3] for values, label in items])}

    found = check(DataLoader(DATA, 5, collate_fn=packed), num_workers=2)
    assert found.verdict == "identical"


def test_epochs_too_long_to_be_seen_whole_are_told_apart_by_their_lengths() -> None:
    long, longer = (DataLoader(Sleeping(count, 0.0), 8) for count in (600, 900))
    found = check(long, longer, toggled=False)
    assert found.verdict == "different"
    assert "An epoch of A has 600 samples, one of B 900." in found.text
    assert check(long, DataLoader(Sleeping(600, 0.0), 6), toggled=False).verdict == "identical"
