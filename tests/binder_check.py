"""`make binder-check`: the steps of the Binder image in a fresh environment, in Binder's limits.

Packages come from the package registry of pip instead of conda-forge, by the names in
`binder/environment.yml`; everything else is what Binder does: `binder/postBuild`, then the first
tutorial and the visitor's server through `binder/start`, with 2 GB, one core and nobody attaching.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat

from tests.binder_box import MEMORY_BYTES, Box, box
from tests.test_binder import CONDA_NAMES, ROOT, conda_packages, name_of

TUTORIAL = "notebooks/01_first_profile.ipynb"
NOT_OF_PIP = {"python", "nodejs", "pip"}
ON_BINDER_ALSO = ("nbclient", "nbconvert")  # what jupyterlab brings along, named for run_demo.py
BUILD_TIMEOUT_S, RUN_TIMEOUT_S, SERVER_TIMEOUT_S = 1500, 1200, 120


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="binder-") as name:
        folder = Path(name) / "repository"
        copy_of_the_repository(folder)
        environment = fresh_environment(Path(name) / "env")
        say("binder/postBuild")
        subprocess.run(
            ["bash", "binder/postBuild"], cwd=folder, env=environment, check=True,
            timeout=BUILD_TIMEOUT_S,
        )  # fmt: skip
        with box() as limits:
            if not limits.limited:
                say("NOT CHECKED: 2 GB of memory (needs root and a memory control group)")
            run_tutorial(limits, folder, environment)
            open_tutorial(limits, folder, environment)
            if limits.limited:
                peak, killed = limits.peak_bytes(), limits.killed()
                say(f"peak memory {peak / 1e6:.0f} MB of {MEMORY_BYTES / 1e6:.0f} MB")
                if killed:
                    raise SystemExit(f"{killed} processes were ended for want of memory")
    say("the image's steps work")
    return 0


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def copy_of_the_repository(folder: Path) -> None:
    """The files that git has, as they are now; what was built here stays behind."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)


def fresh_environment(folder: Path) -> dict[str, str]:
    """Environment variables of a new environment with the image's packages."""
    say("a fresh environment with the image's packages")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=200)
    wanted = [pip_name(name, line) for name, line in conda_packages().items()]
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    constraints = ["-c", str(ROOT / "constraints-dev.txt")]  # torch without CUDA, as in the image
    subprocess.run(
        [*command, *filter(None, wanted), *ON_BINDER_ALSO, *constraints],
        check=True,
        timeout=BUILD_TIMEOUT_S,
    )
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    variables["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    variables["HOME"] = str(folder / "home")
    (folder / "home").mkdir()
    return variables | {"VIRTUAL_ENV": str(folder), "PYTHONNOUSERSITE": "1"}


def pip_name(name: str, line: str) -> str:
    if name in NOT_OF_PIP:
        return ""
    names = {conda: pip for pip, conda in CONDA_NAMES.items()}
    return line.replace(name_of(line), names.get(name, name), 1)


def run_tutorial(limits: Box, folder: Path, environment: dict[str, str]) -> None:
    """Run the first tutorial as a visitor would, and look at what it shows."""
    say(f"{TUTORIAL} with 2 GB, one core, nobody may attach")
    began_s = time.monotonic()
    command = ["binder/start", "python", "notebooks/run_demo.py", TUTORIAL]
    log = folder / "tutorial.log"
    process = limits.popen(command, folder, environment, log)
    try:
        code = process.wait(RUN_TIMEOUT_S)
    finally:
        ended(process)
    if code:
        raise SystemExit(f"the tutorial failed ({code}):\n{log.read_text()[-4000:]}")
    executed = nbformat.read(  # type: ignore[no-untyped-call]
        folder / ".demo" / f"{Path(TUTORIAL).stem}.executed.ipynb", as_version=4
    )
    text = "\n".join(str(cell.get("outputs", "")) for cell in executed.cells)
    if "waited for data" not in text:
        raise SystemExit("the tutorial shows no verdict")
    if not re.search(r"in-process", text):
        raise SystemExit("somebody could attach: the check does not check what it should")
    say(f"the tutorial took {time.monotonic() - began_s:.0f} s")


def open_tutorial(limits: Box, folder: Path, environment: dict[str, str]) -> None:
    """The visitor's server answers, has the tutorial, and has our extension."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = ["jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    options = ["--IdentityProvider.token=", "--LabApp.check_for_updates_class="
               "jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    command = ["binder/start", *server, *options]
    process = limits.popen(command, folder, environment, folder / "server.log")
    try:
        page = answer(f"http://127.0.0.1:{port}/lab/tree/{TUTORIAL}", process)
        answer(f"http://127.0.0.1:{port}/api/contents/{TUTORIAL}", process)
    finally:
        ended(process)
    if "jupyter-ioscope" not in page:
        raise SystemExit("the visitor's page does not load our extension")
    say("the visitor's page opens the tutorial with our extension")


def answer(url: str, process: subprocess.Popen[bytes]) -> str:
    deadline_s = time.monotonic() + SERVER_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30) as reply:
            return str(reply.read().decode())
        time.sleep(0.5)
    raise SystemExit(f"the visitor's server does not answer at {url}")


def ended(process: subprocess.Popen[bytes]) -> None:
    """End it with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
