"""Toggles together: those that settle the same thing are not applied one over the other."""

from __future__ import annotations

import pytest
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggle import agree_or_pass, chosen
from tests.trial_loaders import Sleeping


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (("workers=4", "no_workers"), "the number of workers"),
        (("fewer_workers", "workers"), "the number of workers"),
        (("draft_decode", "opencv_decode"), "how JPEGs are decoded"),
        (("fast_decode", "opencv_decode"), "how JPEGs are decoded"),
        (("hf_format_torch", "hf_format_numpy"), "the format of rows"),
    ],
)
def test_two_toggles_that_settle_the_same_are_answered_with_a_choice(
    names: tuple[str, ...], what: str
) -> None:
    with pytest.raises(TrialError, match=f"both decide {what}: give one") as error:
        agree_or_pass(chosen(names))
    assert all(repr(name) in str(error.value) for name in names)


def test_toggles_that_settle_different_things_go_together() -> None:
    agree_or_pass(chosen(["workers=4", "prefetch=4", "persistent_workers", "draft_decode"]))
    agree_or_pass(chosen(["decode_once", "sample_cache", "hf_format_torch", "hf_streaming"]))


def test_a_comparison_of_toggles_that_contradict_each_other_runs_nothing() -> None:
    loader = DataLoader(Sleeping(), num_workers=1)
    with pytest.raises(TrialError, match="'no_workers' and 'workers=2' both decide"):
        compare(loader, toggles=["workers=2", "no_workers"], budget_s=60)
