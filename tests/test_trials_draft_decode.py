"""Draft mode is offered where it is right, and refused with the reason where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.toggles._pil_draft import DraftDecode
from jupyter_ioscope.trials.toggles.draft_decode import TOGGLE
from tests.trial_loaders import Pictures, make_jpegs

pytestmark = [pytest.mark.timeout(300), pytest.mark.second, pytest.mark.usefixtures("short_trials")]


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return make_jpegs(tmp_path_factory.mktemp("jpegs"))


def applied(dataset: Any) -> LoaderSpec:
    """The spec with the toggle applied from what its own first samples showed."""
    spec = spec_of(DataLoader(dataset, batch_size=4))
    with Isolation() as isolation:
        facts = Runner(isolation, Reporter(None, 60), None, silence_s=20).learn(TOGGLE, spec)
    assert TOGGLE.apply_learnt is not None
    return TOGGLE.apply_learnt(spec, facts)


@pytest.mark.parametrize("workers", [{}, {"num_workers": 1, "multiprocessing_context": "fork"}])
def test_a_resized_jpeg_decodes_faster_and_stays_close(
    jpegs: list[str], workers: dict[str, Any]
) -> None:
    before = vars(Image)["open"]
    loader = DataLoader(Pictures(jpegs), batch_size=4, shuffle=True, **workers)
    found = compare(loader, toggles=["draft_decode"], budget_s=90)
    assert found.verdict == "faster"
    assert found.ratio > 1.5
    assert found.cpu_ratio_low > 1
    assert found.same_data.verdict == "close"
    assert 0 < (found.same_data.max_difference or 0) < 64
    assert 'img.draft("RGB", (128, 128))' in found.code
    assert Image.open is before


def test_spawned_workers_decode_smaller_too(jpegs: list[str]) -> None:
    spec = spec_of(DataLoader(Pictures(jpegs), 4, num_workers=1, multiprocessing_context="spawn"))
    drafted = spec.changed(in_child=(DraftDecode(128, 128),))
    from jupyter_ioscope.trials.delivery import Limit

    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=50)
        plain = runner.deliver("A", spec.changed(num_workers=0), Limit(samples=4))
        other = runner.deliver("B", drafted, Limit(samples=4))
        alone = runner.deliver("B", drafted.changed(num_workers=0), Limit(samples=4))
    assert other.digests[:4] == alone.digests[:4] != plain.digests[:4]


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("crop", "Image.crop comes before any resize"),
        ("pixels", r"its pixels are used at full size \(Image.tobytes\)"),
        ("box", "a box in source coordinates"),
        ("drafting", "asks for draft mode itself"),
        ("thumbnail", "uses draft mode by itself"),
    ],
)
def test_other_uses_are_refused(jpegs: list[str], way: str, reason: str) -> None:
    with pytest.raises(TrialError, match=reason):
        applied(Pictures(jpegs, way))


def test_pictures_hardly_larger_than_wanted_are_refused(jpegs: list[str]) -> None:
    with pytest.raises(TrialError, match=r"only 1\.6 times as large as the 500 x 500"):
        applied(Pictures(jpegs, size=500))


def test_no_jpeg_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (600, 600)).save(path)
    with pytest.raises(TrialError, match=r"none of the 8 images .* is a JPEG"):
        applied(Pictures([str(path)] * 8))


def test_the_draft_size_is_the_largest_target_seen(jpegs: list[str]) -> None:
    class Two(Pictures):
        def __getitem__(self, index: int) -> Any:
            self.size = 100 if index % 2 else 60
            return [super().__getitem__(index)[0].sum()]

    assert applied(Two(jpegs)).in_child == (DraftDecode(100, 100),)


def test_a_turned_picture_asks_for_the_turned_size(jpegs: list[str]) -> None:
    class Turned(Pictures):
        def __getitem__(self, index: int) -> Any:
            image = Image.open(self.paths[index]).transpose(Image.Transpose.ROTATE_90)
            return image.resize((60, 90)).getpixel((0, 0))

    assert applied(Turned(jpegs)).in_child == (DraftDecode(90, 60),)


def test_pillow_never_decodes_below_the_size_asked_for(jpegs: list[str]) -> None:
    for wanted in (60, 99, 128, 200, 399):
        image = Image.open(jpegs[0])
        image.draft("RGB", (wanted, wanted))
        assert min(image.size) >= wanted
        image.close()
