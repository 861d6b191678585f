"""JupyterLab on this machine and Chromium to look at it, for tests.

Nothing of the user's is read or written: settings, data and workspaces lie in a temporary folder,
and the server listens on the loopback address only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

REPOSITORY = Path(__file__).parents[2]
BUILT = REPOSITORY / "jupyter_ioscope" / "labextension"
SHOTS = REPOSITORY / "test-results"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
PAGE_TIMEOUT_MS = 60_000

EXTENSION = "jupyter-ioscope"
APPLICATIONS = {
    "jupyterlab": ("--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None"),
    "notebook": ("--JupyterNotebookApp.expose_app_in_browser=True",),
}
_SERVER_OPTIONS = (
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--IdentityProvider.token=",
    "--ServerApp.disable_check_xsrf=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--ServerApp.terminals_enabled=False",
)
_BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path, disabled: Sequence[str]) -> dict[str, str]:
    """Jupyter's folders below `home`, and the extension as it was built last before any other."""
    extensions = home / "share" / "jupyter" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / EXTENSION).symlink_to(BUILT)
    page_config = home / "config" / "labconfig" / "page_config.json"
    page_config.parent.mkdir(parents=True)
    page_config.write_text(json.dumps({"disabledExtensions": dict.fromkeys(disabled, True)}))
    notifications = home / "settings" / "@jupyterlab" / "apputils-extension"
    notifications.mkdir(parents=True)
    (notifications / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    binaries = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "JUPYTER_PATH": str(home / "share" / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }


@contextlib.contextmanager
def jupyter(
    root: Path, home: Path, application: str = "jupyterlab", disabled: Sequence[str] = ()
) -> Iterator[str]:
    """A server whose files are `root`'s, as its address. Its kernels end with it."""
    port = _free_port()
    log = home / "server.log"
    options = (*_SERVER_OPTIONS, *APPLICATIONS[application], f"--port={port}")
    command = [sys.executable, "-m", application, *options]
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={root}"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(home, disabled),
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, server, log)
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/status", timeout=2):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text()[-4000:]}")


def end_kernels(url: str, notebook: str) -> None:
    """The server keeps a notebook's kernel, with all that was run in it, when a page is closed."""
    with urllib.request.urlopen(f"{url}/api/sessions", timeout=START_TIMEOUT_S) as answer:
        kept = [row["id"] for row in json.load(answer) if row["path"] == notebook]
    for name in kept:
        ended = urllib.request.Request(f"{url}/api/sessions/{name}", method="DELETE")
        urllib.request.urlopen(ended, timeout=START_TIMEOUT_S).close()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_BROWSER_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watch:
    """What a page did that nobody wants: errors, and requests that leave this machine."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        # a missing favicon or settings file is JupyterLab's own business
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.outside.append(request.url)


@dataclass
class Lab:
    """A page with JupyterLab, and what a user does in it."""

    page: Page
    url: str
    root: Path
    watch: Watch

    def write(self, name: str, *cells: str, kernel: str = "python3") -> None:
        """A notebook of code cells, whose kernel will be a new one also at a second try."""
        end_kernels(self.url, name)
        (self.root / name).write_text(json.dumps(notebook_of(cells, kernel)))

    def visit(self, name: str) -> None:
        """Open a file, and none of those that an earlier page had open."""
        self.page.goto(f"{self.url}/lab/tree/{name}?reset")

    def open(self, name: str, *, kernel: bool = True) -> None:
        """Open a notebook and, unless it has no `kernel`, wait until that is ready."""
        self.visit(name)
        self.page.wait_for_function(
            "() => window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')"
        )
        if kernel:
            self.wait_idle()

    def command(self, name: str, **arguments: Any) -> None:
        self.page.evaluate(
            "([name, given]) => window.jupyterapp.commands.execute(name, given)", [name, arguments]
        )

    def start(self) -> None:
        """JupyterLab with nothing open, once all of it is there."""
        self.page.goto(f"{self.url}/lab?reset")
        self.page.wait_for_function("() => window.jupyterapp")
        self.page.evaluate("() => window.jupyterapp.restored")

    def run_cell(self, number: int) -> None:
        """Start a cell without waiting for its end."""
        self.page.evaluate(
            """number => {
                window.jupyterapp.shell.currentWidget.content.activeCellIndex = number;
                void window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            number,
        )

    def run_all(self) -> None:
        """Run all cells and wait until they have ended."""
        self.command("notebook:run-all-cells")
        self.wait_idle()

    def run_last(self) -> None:
        """Run the last cell only."""
        self.page.evaluate(
            """() => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                notebook.activeCellIndex = notebook.widgets.length - 1;
            }"""
        )
        self.command("notebook:run-cell")
        self.wait_idle()

    def wait_idle(self) -> None:
        self.page.wait_for_function(
            """() => {
                const panel = window.jupyterapp.shell.currentWidget;
                const kernel = panel?.sessionContext?.session?.kernel;
                const prompts = [...document.querySelectorAll('.jp-InputPrompt')];
                return kernel?.status === 'idle' && !prompts.some(e => e.textContent.includes('*'));
            }"""
        )

    def sources(self) -> list[str]:
        """Sources of the open notebook's cells."""
        found: list[str] = self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.widgets]
                .map(cell => cell.model.sharedModel.getSource())"""
        )
        return found

    def theme(self, name: str) -> None:
        """Switch to "JupyterLab Light" or "JupyterLab Dark" and wait for it."""
        self.command("apputils:change-theme", theme=name)
        light = "true" if name.endswith("Light") else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        # JupyterLab fails when its splash is to go a second time before it is gone.
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def screenshot(self, name: str, selector: str = ".ioscope-report") -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.locator(selector).first.screenshot(path=path)
        return path


def notebook_of(sources: Sequence[str], name: str = "python3") -> dict[str, Any]:
    """Notebook format 4.5 with these code cells, for the kernel of that name."""
    cells: list[dict[str, Any]] = [
        {
            "id": f"cell-{number}",
            "cell_type": "code",
            "source": source,
            "metadata": {},
            "execution_count": None,
            "outputs": [],
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"name": name, "display_name": name, "language": "python"}
    metadata = {"kernelspec": kernel}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


@contextlib.contextmanager
def lab_page(browser: Browser, url: str, root: Path) -> Iterator[Lab]:
    """A fresh page, tall enough that JupyterLab draws a whole report."""
    context = browser.new_context(viewport={"width": 1280, "height": 2600})
    page = context.new_page()
    page.set_default_timeout(PAGE_TIMEOUT_MS)
    watch = Watch()
    watch.attach(page)
    try:
        yield Lab(page, url, root, watch)
    finally:
        context.close()
