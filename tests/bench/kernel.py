"""A real Jupyter kernel for measuring scripts: where the product is used, threads and all."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from jupyter_client.manager import KernelManager

TIMEOUT_S = 120


@contextlib.contextmanager
def kernel() -> Iterator[Any]:
    """A client of a fresh kernel with ioscope loaded; the kernel ends with the block."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(extra_arguments=["--log-level=ERROR"])
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT_S)
        outputs_of(client, "%load_ext ioscope")
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)


def outputs_of(client: Any, code: str) -> list[tuple[str, dict[str, Any], float]]:
    """Run a cell; its output messages, each with the CLOCK_MONOTONIC second at which it came.

    Raises:
        RuntimeError: the cell failed; the text is its traceback.
    """
    received: list[tuple[str, dict[str, Any], float]] = []

    def hook(message: dict[str, Any]) -> None:
        received.append((message["msg_type"], message["content"], time.monotonic()))

    reply = client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=hook)
    if reply["content"]["status"] != "ok":
        raise RuntimeError("\n".join(reply["content"]["traceback"]))
    return received
