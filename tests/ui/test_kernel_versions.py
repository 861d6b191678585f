"""A report, its buttons and the live panel on kernels that treat messages of a page differently.

ipykernel 6 reads them between cells, 7 may read them on threads of their own. Reports are real,
with a channel of `views.widget`; what they start is as quick as a test wants it.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.ui.harness import REPOSITORY, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

VERSIONS = ("6.31.0", "7.3.0", "")  # the last: the one that is installed
INSTALL_TIMEOUT_S = 100

REPORT = """
%load_ext ioscope
import threading
from types import SimpleNamespace
from IPython.display import display
from jupyter_ioscope.views.widget import ReportChannel
from tests import builders
from tests.view_values import diagnosis, profile

recorded = SimpleNamespace(
    profile=profile(), diagnosis=diagnosis(), offers=builders.offers(), results=()
)
said = []

def report(name):
    channel = ReportChannel(name)
    def command(given):
        said.append((name, given["cmd"]))
        state, text = "running", given["cmd"] + ": pair 1 of 9"
        if given["cmd"] == "cancel":
            state, text = "cancelled", "Cancelled."
        channel.progress({"state": state, "text": text, "fraction": 0.1})
    channel.on_command(command)
    display(channel.bundle(recorded), raw=True)
"""
BUSY = """
import os, time
print('running')
while not os.path.exists('enough'):
    time.sleep(0.02)
"""


@pytest.fixture(params=VERSIONS, ids=lambda version: version or "installed")
def kernel(request: pytest.FixtureRequest, server: str, notebooks: Path) -> str:
    """Name of a kernel with one version of ipykernel."""
    version = str(request.param)
    if not version:
        return "python3"
    name = f"ipykernel-{version}"
    kernelspec(notebooks / "home", name, installed(version, notebooks / name))
    return name


def installed(version: str, folder: Path) -> Path:
    """That version of ipykernel alone, in a folder of its own."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    try:
        subprocess.run(
            [*command, str(folder), f"ipykernel=={version}"],
            check=True,
            timeout=INSTALL_TIMEOUT_S,
            capture_output=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"ipykernel {version} cannot be installed here: {error}")
    return folder


def kernelspec(home: Path, name: str, folder: Path) -> None:
    """A kernel with what is in `folder` before anything else."""
    spec = home / "share" / "jupyter" / "kernels" / name
    spec.mkdir(parents=True, exist_ok=True)  # there at a second try
    content = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": name,
        "language": "python",
        "env": {"PYTHONPATH": f"{folder}:{REPOSITORY}"},
    }
    (spec / "kernel.json").write_text(json.dumps(content))


def primary(report: Locator) -> Locator:
    return report.get_by_role("button", name="Run A/B")


def test_buttons_and_panel_reach_the_kernel_also_beside_a_running_cell(
    lab: Lab, kernel: str
) -> None:
    (lab.root / "enough").unlink(missing_ok=True)
    version = "import ipykernel; print('ipykernel', ipykernel.__version__)"
    name = f"{kernel}.ipynb"  # another one would get the kernel of the test before
    lab.write(name, REPORT, "report('one')", "report('other')", BUSY, version, kernel=kernel)
    lab.open(name)
    page = lab.page
    for cell in (0, 1, 2, 4):
        lab.run_cell(cell)
        lab.wait_idle()
    wanted = kernel.partition("-")[2] or importlib.metadata.version("ipykernel")
    expect(page.locator(".jp-Cell").nth(4)).to_contain_text(f"ipykernel {wanted}")

    one, other = page.locator(".ioscope-report").all()
    primary(one).click()
    expect(one.locator(".ioscope-progress")).to_contain_text("pair 1 of 9")
    expect(primary(other)).to_be_enabled()  # two reports do not disturb each other

    lab.run_cell(3)
    page.get_by_text("running", exact=True).wait_for()
    lab.command("ioscope:open-live")
    one.get_by_role("button", name="Cancel").click()
    (lab.root / "enough").touch()
    expect(one.locator(".ioscope-progress")).to_contain_text("Cancelled.")
    expect(page.locator(".ioscope-live")).to_have_attribute("data-state", "live")
    assert lab.watch.errors == []
    assert lab.watch.outside == []
