"""The summary picture: opens, shows what it must, stays small, and is not needed."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views import canvas, png
from jupyter_ioscope.views.colours import LIMITING, PAPER, PART_COLOURS
from jupyter_ioscope.views.payload import report_payload
from tests import builders
from tests.view_values import HOSTILE, UNICODE, diagnosis, empty_diagnosis, profile

ROOT = Path(__file__).parent.parent
Image = pytest.importorskip("PIL.Image")


def picture(value: Profile, verdict: Diagnosis) -> tuple[Any, int]:
    """The picture in RGB, and its bytes."""
    report = report_payload(value, verdict, builders.offers(), [builders.comparison(2.41)])
    data = png.png_of(report)
    assert data is not None
    image = Image.open(io.BytesIO(data))
    image.load()
    assert image.format == "PNG"
    return image.convert("RGB"), len(data)


def colours(image: Any) -> dict[str, int]:
    found = image.getcolors(maxcolors=1 << 20)
    return {f"#{r:02X}{g:02X}{b:02X}": count for count, (r, g, b) in found}


def test_it_is_light_small_and_holds_the_colours_of_the_bars_exactly() -> None:
    image, size = picture(profile(), diagnosis())
    assert size < 60_000
    found = colours(image)
    area = image.width * image.height
    assert found[PAPER] > area / 2
    for part in ("step", "cpu", "run_queue", "disk", "hand_over", "idle"):
        assert found.get(PART_COLOURS[part], 0) > 100, part
    assert found[LIMITING] > 1000


def test_wider_shares_cover_more_of_it() -> None:
    found = colours(picture(profile(), diagnosis())[0])
    assert found[PART_COLOURS["cpu"]] > 3 * found[PART_COLOURS["run_queue"]]


def test_a_border_and_a_margin_set_it_off_from_a_dark_page() -> None:
    image, _ = picture(profile(), diagnosis())
    middle = image.height // 2
    edge = [image.getpixel((x, middle)) for x in range(8)]
    assert edge[0] != (255, 255, 255)
    assert set(edge[2:]) == {(255, 255, 255)}


def test_more_to_say_makes_it_higher_not_wider() -> None:
    short, _ = picture(builders.empty_profile(), empty_diagnosis())
    long, _ = picture(profile(8, batches=40), diagnose(profile(8, batches=40)))
    assert short.width == long.width
    assert short.height < long.height < 2 * long.width


@pytest.mark.parametrize("text", [HOSTILE, UNICODE, "x" * 5000, ""])
def test_any_text_can_be_drawn(text: str) -> None:
    image, size = picture(
        builders.without(profile(), label=text), diagnosis(headline=text, detail=text)
    )
    assert size < 60_000
    assert image.height < 2 * image.width


def test_pillows_own_font_gets_no_sign_that_it_would_draw_as_a_box() -> None:
    from PIL import ImageFont

    font = ImageFont.load_default(20)
    shown = canvas._plain("2.41\u00a0× (2.28 – 2.55) µs …", font)
    box = font.getmask("\u2013").getbbox(), bytes(font.getmask("\u2013"))
    assert shown == "2.41 x (2.28 - 2.55) us .."
    assert all((font.getmask(c).getbbox(), bytes(font.getmask(c))) != box for c in set(shown))


def test_without_any_font_on_the_machine_pillows_own_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canvas, "_places", lambda _: ["nowhere.ttf"])
    canvas._font.cache_clear()
    try:
        image, size = picture(profile(), diagnosis())
    finally:
        canvas._font.cache_clear()
    assert size < 60_000
    assert image.height > 300


def test_without_pillow_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "installed", lambda name: name != "PIL")
    assert png.png_of(report_payload(profile(), diagnosis())) is None


def test_what_cannot_be_drawn_is_left_out_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("cannot open resource")

    monkeypatch.setattr(png, "_drawn", broken)
    assert png.png_of(report_payload(profile(), diagnosis())) is None
    assert "could not be drawn" in caplog.text


@pytest.mark.timeout(240)
def test_matplotlib_is_never_imported() -> None:
    code = (
        "import sys\n"
        "from tests.view_values import diagnosis, profile\n"
        "from jupyter_ioscope.views.payload import report_payload\n"
        "from jupyter_ioscope.views.png import png_of\n"
        "assert png_of(report_payload(profile(), diagnosis()))\n"
        "assert not [name for name in sys.modules if name.startswith('matplotlib')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=150, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
