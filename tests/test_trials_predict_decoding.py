"""Each way of decoding pictures is predicted from its own time for the user's own pictures."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from torch.utils.data import DataLoader

from jupyter_ioscope.model.observed import ImageSize
from jupyter_ioscope.model.prediction import Prediction
from jupyter_ioscope.trials import decode_times as own_process
from jupyter_ioscope.trials import predict_decoding
from jupyter_ioscope.trials.decode_times import KEPT, PIL, SCALES, DecodeTimes, decode_times
from jupyter_ioscope.trials.predict import Predictor
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggle import chosen
from tests import work_values
from tests.trial_loaders import Sleeping

SIDE = 224
FULL = (0.010, 0.012)


def times(**left: float) -> DecodeTimes:
    """Of two pictures of 1600 x 1200: what each decoder leaves of PIL's time at any scale."""
    decode: dict[str, dict[int, tuple[float, ...]]] = {
        name: dict.fromkeys(SCALES, tuple(part * value for value in FULL))
        for name, part in left.items()
    }
    decode[PIL][1] = FULL
    resize: dict[int, tuple[float, ...]] = {s: (0.004 / s**2,) * 2 for s in SCALES}
    return DecodeTimes(((1600, 1200),) * 2, decode, resize)


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """(toggle, times) -> its prediction, in a loop that decodes for 60 % of its fetches."""
    pixels = SIDE * SIDE * 3 * 4
    seen = (work_values.JPEG, 600), (work_values.RESIZE, 200), (work_values.USER, 200)
    profile = work_values.profile(*seen, step_ms=0.1)
    fetches = tuple(row._replace(batch_bytes=row.samples * pixels) for row in profile.fetches)
    images = (ImageSize("/data/a.jpg", 1600, 1200), ImageSize("/data/b.jpg", 1600, 1200))
    profile = replace(profile, fetches=fetches, images=images)

    def predict(toggle: str, told: DecodeTimes | None) -> Prediction | None:
        monkeypatch.setattr(predict_decoding, "decode_times", lambda paths, side: told)
        return Predictor(profile, spec_of(DataLoader(Sleeping()))).one(chosen(toggle)[0])

    return predict


def test_each_decoder_has_an_interval_of_its_own(predicted: Any) -> None:
    told = times(PIL=0.4, cv2=0.9, simplejpeg=0.2, kept=0.01)
    named = ("opencv_decode", "draft_decode", "fast_decode", "decode_once")
    found = [predicted(name, told) for name in named]
    assert all(row.low < row.ratio < row.high for row in found)
    ratios = [row.ratio for row in found]
    assert ratios == sorted(ratios)
    assert len(set(ratios)) == len(ratios)
    assert "Timed on 2 of your pictures: 90" in found[0].how


def test_a_slower_decoder_is_predicted_to_be_slower(predicted: Any) -> None:
    quick, slow = (predicted("opencv_decode", times(PIL=1.0, cv2=left)) for left in (0.5, 1.2))
    assert slow.ratio < quick.ratio
    assert slow.low < 1


def test_pictures_that_differ_widen_the_interval(predicted: Any) -> None:
    even = times(PIL=0.4)
    uneven = even._replace(decode={PIL: {1: FULL, **dict.fromkeys((2, 4, 8), (0.001, 0.0078))}})
    narrow, wide = predicted("draft_decode", even), predicted("draft_decode", uneven)
    assert wide.ratio == pytest.approx(narrow.ratio, rel=0.02)
    assert wide.high / wide.low > narrow.high / narrow.low


def test_what_could_not_be_timed_is_bounded_by_what_decoding_takes(predicted: Any) -> None:
    for told in (None, times(PIL=0.4)):  # nothing at all; a decoder that is not installed
        found = predicted("opencv_decode", told)
        assert found is not None
        assert "removing all of it would bring the larger number" in found.how


@pytest.mark.timeout(60)
def test_decoders_are_timed_on_files_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_process, "_WAIT_S", 50.0)
    noise = Image.frombytes("RGB", (1600, 1200), os.urandom(1600 * 1200 * 3))
    buffer = io.BytesIO()
    noise.save(buffer, "JPEG")
    good, broken, other = (tmp_path / name for name in ("a.jpg", "b.jpg", "c.jpg"))
    good.write_bytes(buffer.getvalue())
    broken.write_bytes(buffer.getvalue()[:700])
    other.write_bytes(b"no picture")
    found = decode_times(tuple(map(str, (broken, good, other, tmp_path / "gone.jpg"))), 64)
    assert found is not None
    assert found.sizes == ((1600, 1200),)
    assert found.decode[PIL][8][0] < found.decode[PIL][1][0]
    assert found.decode[KEPT][1][0] < found.decode[PIL][1][0]
    assert found.resize[8][0] < found.resize[1][0]
    assert decode_times((str(other),), 64) is None
