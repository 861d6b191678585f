"""Runs one function in a fork of the bench's own process and brings back what it returns."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

_POLL_S = 0.5


class ArmError(Exception):
    """An arm failed, died or hangs; the text says how."""


def forked(body: Callable[[], dict[str, Any]], limit_s: float, beat: Callable[[], None]) -> Any:
    """`body()` in a fresh fork; `beat` is called about twice a second while it runs.

    The bench's process has one thread, and its children die with it.

    Raises:
        ArmError: it raised, was killed, or took longer than `limit_s` seconds.
    """
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        _serve(body, read_fd, write_fd)
    os.close(write_fd)
    try:
        text = _read(read_fd, time.monotonic() + limit_s, beat)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(read_fd)
        status = os.waitpid(pid, 0)[1]
    if not text:
        raise ArmError(_how(status))
    message = json.loads(text)
    if "error" in message:
        raise ArmError(message["error"])
    return message["result"]


def here(body: Callable[[], dict[str, Any]]) -> Any:
    """The same without a fork, where the process is the user's own.

    Raises:
        ArmError: it raised.
    """
    try:
        return body()
    except Exception as error:
        raise ArmError(short(error)) from error


def short(error: BaseException) -> str:
    """An exception in one line of at most 300 characters, even where it cannot be shown."""
    try:
        said = str(error)
    except Exception:
        said = "(its text cannot be shown)"
    text = " ".join(f"{type(error).__name__}: {said}".split())
    return text if len(text) <= 300 else text[:299] + "…"


def _serve(body: Callable[[], dict[str, Any]], read_fd: int, write_fd: int) -> None:
    status = 70
    try:
        os.close(read_fd)
        try:
            message: dict[str, Any] = {"result": body()}
        except BaseException as error:
            message = {"error": short(error)}
        data = json.dumps(message).encode()
        while data:
            data = data[os.write(write_fd, data) :]
        status = 0
    finally:
        os._exit(status)


def _read(fd: int, until: float, beat: Callable[[], None]) -> bytes:
    found = b""
    while True:
        if select.select([fd], [], [], _POLL_S)[0]:
            data = os.read(fd, 1 << 16)
            if not data:
                return found
            found += data
        beat()
        if time.monotonic() > until:
            raise ArmError("it gave no result in time and was ended")


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hint = " (often: out of memory)" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{hint}"
    return f"its process ended without a result (exit status {os.waitstatus_to_exitcode(status)})"
