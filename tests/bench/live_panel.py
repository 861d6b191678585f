"""CPU of an idle kernel with the live panel open, beyond what it takes with the panel closed.

Stretches with and without an open page alternate in one kernel that has two live workers. The
kernel counts its own CPU time, all its threads together. Opening the panel is in no stretch.
"""

from __future__ import annotations

import queue
import time
import uuid
from typing import Any

from jupyter_ioscope.live_panel import TARGET
from tests.bench.kernel import kernel, outputs_of
from tests.bench.measure import print_result

STRETCH_S, PAIRS = 15.0, 6
QUICK_STRETCH_S, QUICK_PAIRS = 10.0, 3
SET_UP = """
import time, torch
from torch.utils.data import DataLoader
iterator = iter(DataLoader(torch.arange(100_000), num_workers=2))
first = next(iterator)
"""
CPU_NOW = "print(time.process_time())"


def measure(quick: bool) -> dict[str, Any]:
    stretch_s, pairs = (QUICK_STRETCH_S, QUICK_PAIRS) if quick else (STRETCH_S, PAIRS)
    opened, closed = [], []
    with kernel() as client:
        outputs_of(client, SET_UP)
        with_panel(client, 2.0)  # what happens once, such as imports, is in no stretch
        for _ in range(pairs):
            closed.append(share(client, stretch_s))
            opened.append(with_panel(client, stretch_s))
    extra = [a - b for a, b in zip(opened, closed, strict=True)]
    return {"open": opened, "closed": closed, "extra": extra}


def with_panel(client: Any, stretch_s: float) -> float:
    """`share` while a page has the panel open."""
    comm_id = uuid.uuid4().hex
    tell(client, "comm_open", {"comm_id": comm_id, "target_name": TARGET, "data": {}})
    time.sleep(1.5)  # the first reading opens files
    drained(client)
    used = share(client, stretch_s)
    tell(client, "comm_close", {"comm_id": comm_id, "data": {}})
    time.sleep(1.5)
    return used


def share(client: Any, stretch_s: float) -> float:
    """CPU time of the kernel's process over a stretch of time, as a share of one core."""
    before_s, began_s = cpu_s(client), time.monotonic()
    time.sleep(stretch_s)
    return (cpu_s(client) - before_s) / (time.monotonic() - began_s)


def cpu_s(client: Any) -> float:
    outputs = outputs_of(client, CPU_NOW)
    return float(next(content["text"] for kind, content, _ in outputs if kind == "stream"))


def tell(client: Any, kind: str, content: dict[str, Any]) -> None:
    client.shell_channel.send(client.session.msg(kind, content))


def drained(client: Any) -> None:
    """Make sure that readings come, so that what is measured is the panel at work."""
    try:
        while client.get_iopub_msg(timeout=20)["msg_type"] != "comm_msg":
            pass
    except queue.Empty:
        raise RuntimeError("the open panel gets no readings") from None


if __name__ == "__main__":
    print_result(measure, __doc__)
