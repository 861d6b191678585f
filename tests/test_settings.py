"""Settings of JupyterLab: a profiled cell that names no options takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_ioscope import magic_line, settings


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    settings.use("{}")


def test_a_line_without_options_takes_the_settings() -> None:
    settings.use('{"rate_hz": 50, "stacks": false, "live_line": false}')
    options = magic_line.parse("")
    assert (options.capture.rate_hz, options.capture.stacks, options.live) == (50.0, False, False)


def test_what_the_line_says_comes_first() -> None:
    settings.use('{"rate_hz": 50, "stacks": false, "live_line": false}')
    options = magic_line.parse("--rate 10 --stacks --live")
    assert (options.capture.rate_hz, options.capture.stacks, options.live) == (10.0, True, True)
    settings.use("{}")
    options = magic_line.parse("--no-stacks --no-live")
    assert (options.capture.stacks, options.live) == (False, False)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '{"rate_hz": "fast", "stacks": 1, "live_line": null}', '{"rate_hz": 1e9}',
     '{"rate_hz": true, "more": {}}', '{"rate_hz": NaN}', "[" * 100_000],
)  # fmt: skip
def test_what_cannot_be_used_becomes_the_default(text: str) -> None:
    settings.use('{"rate_hz": 50, "stacks": false}')
    settings.use(text)
    assert settings.current() == settings.Settings()
