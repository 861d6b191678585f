"""What each toggle brings, as a table: the whole first, every part with its interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jupyter_ioscope import magics
from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.model.parts import Parts
from jupyter_ioscope.views.parts import parts_html, parts_text
from jupyter_ioscope.views.text import WIDTH
from jupyter_ioscope.views.words import columns_of
from tests import builders
from tests.view_values import HOSTILE, UNICODE, is_inert


def compared(ratio: float, label: str, **settings: Any) -> Comparison:
    made = builders.comparison(ratio, **settings)
    return replace(made, arms=(made.arms[0], replace(made.arms[1], label=label)))


def parts(together: bool = True, label: str = "4 worker processes", reason: str = "") -> Parts:
    return Parts(
        alone=(compared(3.0, label), compared(1.5, "smaller pictures", same="different")),
        together=compared(3.6, "all together") if together else None,
        failed=(("pin_memory", reason),) if reason else (),
        cancelled=not together,
    )


def shown(value: Parts) -> str:
    return parts_text(value).replace("\u00a0", " ")


def test_the_whole_comes_first_and_each_part_has_its_interval_and_verdict() -> None:
    lines = shown(parts()).split("\n")
    assert lines[0] == "All together: 3.60 × faster"
    table = {line.split("  ")[1]: line for line in lines[1:] if "× " in line}
    assert {"4 worker processes", "smaller pictures", "all together"} < set(table)
    first = parts().alone[0]
    assert f"× {first.ratio_low:.2f} – {first.ratio_high:.2f}" in table["4 worker processes"]
    assert "× 4.50" in table["product of the parts"]  # 3.0 x 1.5
    assert any("95 %" in line and "any of them" in line for line in lines)


def test_a_part_that_was_not_tried_is_told_with_its_reason() -> None:
    assert "Note: pin_memory was not tried: there is no GPU" in shown(
        parts(reason="there is no GPU")
    )


def test_without_the_whole_it_says_so() -> None:
    text = shown(parts(together=False))
    assert text.startswith("Cancelled before all toggles were tried together\n")
    assert "product of the parts" not in text


@pytest.mark.parametrize("hostile", [HOSTILE, UNICODE])
def test_labels_and_reasons_are_only_text(hostile: str) -> None:
    value = parts(label=hostile, reason=hostile)
    assert "<script" not in parts_html(value)
    assert is_inert(parts_html(value))
    assert is_inert(parts_text(value))
    assert max(map(columns_of, parts_text(value).split("\n"))) <= WIDTH


def test_a_notebook_shows_the_table() -> None:
    shell: Any = InteractiveShell.instance()
    try:
        magics.load(shell)
        data, _ = shell.display_formatter.format(parts())
        magics.unload(shell)
    finally:
        InteractiveShell.clear_instance()
    assert data["text/html"].count("<tr>") == 5
    assert data["text/plain"].startswith("All together: ")
