"""pip install that says what it is doing, in one line that changes: it takes minutes.

    python notebooks/pip_progress.py -e '.[demo,test]' -c constraints-dev.txt

On a terminal the line is redrawn; in a log there is a new one now and then. Everything that pip
said is printed only when it failed.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator

_LOG_EVERY_S = 20.0
_PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-color")
_WIDTH = 78


class Progress:
    """What pip is doing, from the lines that it prints."""

    def __init__(self) -> None:
        self.doing = "starting pip"
        self.packages = 0

    def heard(self, line: str) -> None:
        line = line.strip()
        if line.startswith("Collecting "):
            self.packages += 1
            self.doing = f"choosing packages ({self.packages} so far)"
        elif found := re.match(r"Downloading (\S+?)-\d\S* (\(.*\))", line):
            self.doing = f"downloading {found[1]} {found[2]}"
        elif line.startswith("Installing collected packages"):
            self.doing = f"unpacking {line.count(',') + 1} packages"
        elif line.startswith("Building editable") and "started" in line:
            self.doing = "building the JupyterLab extension"
        elif line.startswith("Installing build dependencies") and "started" in line:
            self.doing = "getting what the build needs"


def main(arguments: list[str]) -> int:
    """Run pip; its exit code."""
    pip = subprocess.Popen(
        [sys.executable, *_PIP, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert pip.stdout is not None
    said, progress = bytearray(), Progress()
    line = _Line(sys.stderr.isatty())
    for text in _read(pip.stdout.fileno()):
        for one in text.decode(errors="replace").splitlines():
            progress.heard(one)
        said += text
        line.show(progress.doing)
    pip.stdout.close()
    code = pip.wait()
    line.end()
    if code:
        sys.stderr.write(said.decode(errors="replace"))
    return code


def _read(fd: int) -> Iterator[bytes]:
    """What comes, in whole lines; nothing once a second in between."""
    rest = b""
    while True:
        ready, _, _ = select.select([fd], [], [], 1.0)
        if not ready:
            yield b""
            continue
        text = os.read(fd, 1 << 16)
        if not text:
            yield rest
            return
        whole, end, rest = (rest + text).rpartition(b"\n")
        yield whole + end


class _Line:
    """The line of progress."""

    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal
        self._began_s = time.monotonic()
        self._due_s = self._began_s + _LOG_EVERY_S

    def show(self, doing: str) -> None:
        now_s = time.monotonic()
        minutes, seconds = divmod(int(now_s - self._began_s), 60)
        text = f"  {minutes}:{seconds:02d}  {doing}"[:_WIDTH]
        if self._terminal:
            print(f"\r{text:<{_WIDTH}}", end="", file=sys.stderr, flush=True)
        elif now_s >= self._due_s:
            self._due_s = now_s + _LOG_EVERY_S
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print(f"\r{'':<{_WIDTH}}\r", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
