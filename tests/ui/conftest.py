"""One server and one browser for all browser tests, a fresh page for each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Browser, expect  # noqa: E402

from tests.ui.harness import BUILT, CHROMIUM, Lab, chromium, jupyter, lab_page  # noqa: E402

# a state is waited for, not a time: on a busy machine five seconds are not enough
expect.set_options(timeout=45_000)


@pytest.fixture(scope="session")
def notebooks() -> Iterator[Path]:
    # short: the path of a kernel's socket must fit into 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="ui-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server(notebooks: Path) -> Iterator[str]:
    if not (BUILT / "package.json").exists():
        pytest.fail("the JupyterLab extension is not built: cd labextension && jlpm && jlpm build")
    home = notebooks / "home"
    files = notebooks / "files"
    home.mkdir()
    files.mkdir()
    with jupyter(files, home) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with chromium() as started:
        yield started


@pytest.fixture
def lab(browser: Browser, server: str, notebooks: Path) -> Iterator[Lab]:
    with lab_page(browser, server, notebooks / "files") as page:
        yield page
