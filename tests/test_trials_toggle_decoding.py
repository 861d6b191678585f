"""JPEGs decoded by other libraries, and pictures kept at the size they are resized to."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from jupyter_ioscope.errors import TrialError
from jupyter_ioscope.trials.compare import compare
from jupyter_ioscope.trials.toggles import decode_once, fast_decode, opencv_decode
from jupyter_ioscope.trials.toggles._jpeg_swap import DECODERS, JpegSwap
from tests.toggle_trials import compiles, tried
from tests.trial_loaders import Pictures, make_jpegs

pytestmark = [pytest.mark.timeout(300), pytest.mark.second, pytest.mark.usefixtures("short_trials")]
LIBRARIES = {"opencv_decode": "cv2", "fast_decode": "simplejpeg"}
TOGGLES = {"opencv_decode": opencv_decode.TOGGLE, "fast_decode": fast_decode.TOGGLE}


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return make_jpegs(tmp_path_factory.mktemp("jpegs"))


class More(Pictures):
    """Other things that programs do with pictures."""

    def __getitem__(self, index: int) -> Any:
        return getattr(self, self.way)(index), index

    def array(self, image: Any) -> Any:
        return torch.from_numpy(np.array(image))

    def from_bytes(self, index: int) -> Any:
        data = io.BytesIO(Path(self.paths[index]).read_bytes())
        return self.array(Image.open(data).convert("RGB").resize((self.size, self.size)))

    def from_file(self, index: int) -> Any:
        with open(self.paths[index], "rb") as file:
            image: Image.Image = Image.open(file)
            image.thumbnail((self.size, self.size))
            return self.array(image)

    def grey(self, index: int) -> Any:
        image: Any = Image.open(self.paths[index])
        return self.array(image.convert("L").resize((self.size, self.size)))

    def full(self, index: int) -> Any:
        return self.array(Image.open(self.paths[index]).convert("RGB"))[::9, ::9].contiguous()

    def both(self, index: int) -> Any:
        image: Any = Image.open(self.paths[index])
        small = image.resize((self.size, self.size), Image.Resampling.BOX)
        assert image.size == (1000, 800)
        return self.array(small), int(np.asarray(image)[500, 500, 0])

    def turned(self, index: int) -> Any:
        image: Any = Image.open(self.paths[index])
        return self.array(image.convert("RGB").rotate(random.random() * 9).resize((64, 64)))

    def any_size(self, index: int) -> Any:
        image: Any = Image.open(self.paths[index])
        small = image.resize((random.randrange(60, 600), random.randrange(60, 600)))
        return self.array(small.resize((64, 64)))


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_resized_jpeg_decodes_faster_and_stays_close(jpegs: list[str], name: str) -> None:
    pytest.importorskip(LIBRARIES[name])
    before = vars(Image)["open"]
    found = compare(DataLoader(Pictures(jpegs), 4, shuffle=True), toggles=[name], budget_s=90)
    assert found.verdict == "faster"
    assert found.ratio > 1.5
    assert found.same_data.verdict == "close"
    assert Image.open is before


@pytest.mark.parametrize("name", LIBRARIES)
def test_where_the_full_size_is_used_it_is_decoded_in_full(jpegs: list[str], name: str) -> None:
    library = LIBRARIES[name]
    pytest.importorskip(library)
    found = tried(TOGGLES[name], DataLoader(More(jpegs, "full"), batch_size=4))
    assert found.spec.in_child == (JpegSwap(library),)
    compiles(TOGGLES[name], found.spec)
    resized = tried(TOGGLES[name], DataLoader(More(jpegs, "from_bytes"), batch_size=4))
    assert resized.spec.in_child == (JpegSwap(library, 128, 128),)
    compiles(TOGGLES[name], resized.spec)


@pytest.mark.parametrize("library", ["cv2", "simplejpeg"])
@pytest.mark.parametrize("scale", [1, 2, 4, 8])
def test_decoders_give_the_pictures_of_pillow(jpegs: list[str], library: str, scale: int) -> None:
    pytest.importorskip(library)
    image: Any = Image.open(jpegs[0])
    image.draft("RGB", (1000 // scale, 800 // scale))
    array = DECODERS[library]()(Path(jpegs[0]).read_bytes(), scale)
    plain = np.asarray(image)
    assert array.shape == plain.shape
    assert np.abs(array.astype(int) - plain).mean() < 2


@pytest.mark.parametrize("name", LIBRARIES)
def test_no_jpeg_is_refused(tmp_path: Path, name: str) -> None:
    pytest.importorskip(LIBRARIES[name])
    path = tmp_path / "a.png"
    Image.new("RGB", (600, 600)).save(path)
    with pytest.raises(TrialError, match=r"none of the 8 images .* is a JPEG"):
        tried(TOGGLES[name], DataLoader(Pictures([str(path)] * 8), batch_size=4))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, jpegs: list[str]) -> None:
    for module in (fast_decode, opencv_decode):
        monkeypatch.setattr(module, "installed", lambda name: False)
        with pytest.raises(TrialError, match="pip install"):
            tried(module.TOGGLE, DataLoader(Pictures(jpegs), batch_size=4))


@pytest.mark.parametrize("way", ["from_bytes", "from_file", "both"])
@pytest.mark.parametrize("workers", [{}, {"num_workers": 2, "multiprocessing_context": "fork"}])
def test_kept_pictures_are_the_same(jpegs: list[str], way: str, workers: dict[str, Any]) -> None:
    found = tried(decode_once.TOGGLE, DataLoader(More(jpegs, way), batch_size=4, **workers))
    assert found.same
    assert found.samples == len(jpegs)
    compiles(decode_once.TOGGLE, found.spec)


@pytest.mark.parametrize(
    ("dataset", "way", "reason"),
    [
        (More, "turned", "before anything else is done with them"),
        (More, "grey", "before anything else is done with them"),
        (More, "any_size", "drawn at random"),
        (Pictures, "crop", "before anything else is done with them"),
    ],
)
def test_pictures_that_are_needed_at_full_size_are_refused(
    jpegs: list[str], dataset: Any, way: str, reason: str
) -> None:
    with pytest.raises(TrialError, match=reason):
        tried(decode_once.TOGGLE, DataLoader(dataset(jpegs, way), batch_size=4))


def test_decoding_once_is_found_faster(jpegs: list[str]) -> None:
    loader = DataLoader(Pictures(jpegs), batch_size=4, shuffle=True)
    found = compare(loader, toggles=["decode_once"], budget_s=90)
    assert found.same_data.verdict == "identical"
    assert found.verdict == "faster"
    assert found.ratio > 3


def test_the_code_shrinks_pictures_once(jpegs: list[str], tmp_path: Path) -> None:
    from jupyter_ioscope.trials.spec import spec_of

    names: dict[str, Any] = {}
    code = decode_once.TOGGLE.code(spec_of(DataLoader(Pictures(jpegs), batch_size=4)))
    exec(compile(code, "<code>", "exec"), names)
    names["shrink_once"](jpegs[:3], (32, 24), str(tmp_path / "small.npy"))
    small = np.load(tmp_path / "small.npy")
    expected = np.asarray(Image.open(jpegs[2]).convert("RGB").resize((32, 24)))
    assert (small[2] == expected).all()
