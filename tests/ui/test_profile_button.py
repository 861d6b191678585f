"""The button that profiles a cell."""

from __future__ import annotations

import pytest

from tests.ui.harness import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

BUTTON = ".jp-cell-toolbar [data-jp-item-name='ioscope-profile']"


def test_the_button_puts_the_magic_on_the_cell_and_runs_it(lab: Lab) -> None:
    lab.write("button.ipynb", "value = 6 * 7", "print('untouched')")
    lab.open("button.ipynb")
    lab.page.locator(".jp-Cell").first.click()
    lab.page.locator(BUTTON).first.click()
    lab.page.wait_for_function(
        "() => document.querySelector('.jp-Cell .jp-InputPrompt').textContent.includes('1')"
    )
    assert lab.sources() == ["%%ioscope\nvalue = 6 * 7", "print('untouched')"]


def test_the_magic_is_put_there_once(lab: Lab) -> None:
    lab.write("once.ipynb", "%%ioscope --no-stacks\nvalue = 6 * 7")
    lab.open("once.ipynb")
    lab.command("ioscope:profile-cell")
    lab.wait_idle()
    assert lab.sources()[0] == "%%ioscope --no-stacks\nvalue = 6 * 7"


def test_a_kernel_without_ioscope_leaves_the_cell_alone_and_says_so(lab: Lab) -> None:
    hide = "import sys\nsys.modules['ioscope'] = None"
    lab.write("absent.ipynb", hide, "value = 6 * 7")
    lab.open("absent.ipynb")
    lab.run_all()
    lab.page.locator(".jp-Cell").nth(1).click()
    lab.command("ioscope:profile-cell")
    lab.page.get_by_text("not installed where this kernel runs").first.wait_for()
    assert lab.sources()[1] == "value = 6 * 7"


def test_a_text_cell_has_no_such_button(lab: Lab) -> None:
    lab.write("text.ipynb", "1")
    lab.open("text.ipynb")
    lab.command("notebook:change-cell-to-markdown")
    assert not lab.page.evaluate(
        "() => window.jupyterapp.commands.isEnabled('ioscope:profile-cell')"
    )
