"""Whether the live line and the live panel stay slow enough, and lose nothing, over ten minutes.

A real kernel runs one profiled cell with two workers while a page has the panel open. The kernel
notes the id of every update that it hands to its output socket, the client those that arrive.
"""

from __future__ import annotations

import json
import queue
import time
import uuid
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from jupyter_ioscope.live_panel import SIGN_OF_LIFE_S, TARGET
from tests.bench.kernel import TIMEOUT_S, kernel, outputs_of
from tests.bench.live_panel import tell
from tests.bench.measure import print_result

CELL_S, QUICK_CELL_S = 600.0, 20.0
LATE_S = 10.0  # what has not come this long after the cell's end is lost
FAMILIES = {"line": "update_display_data", "panel": "comm_msg"}

SET_UP = """
import json, time, torch
from torch.utils.data import DataLoader
loader = DataLoader(torch.arange(100_000_000), batch_size=8, num_workers=2)

def noting(send, sent):
    def noted(*args, **kwargs):
        made = send(*args, **kwargs)
        if made and made["msg_type"] in ("update_display_data", "comm_msg"):
            comm = made["content"].get("comm_id", "")
            sent.append((made["msg_type"], comm, made["msg_id"], time.monotonic()))
        return made
    return noted

sent, session = [], get_ipython().kernel.session
session.send = noting(session.send, sent)
"""
CELL = """%%ioscope --no-stacks
began = time.monotonic()
for batch in loader:
    time.sleep(0.05)
    if time.monotonic() - began > {seconds}:
        break
"""
SENT = "del session.send; print(json.dumps(sent))"

Update = tuple[str, str, float]  # message type, message id, second of CLOCK_MONOTONIC


def measure(quick: bool) -> dict[str, Any]:
    cell_s = QUICK_CELL_S if quick else CELL_S
    sent, received = updates(cell_s)
    return {"cell_s": cell_s, **{name: counted(name, sent, received) for name in FAMILIES}}


def updates(cell_s: float) -> tuple[list[Update], list[Update]]:
    """What the kernel sent and what its client got while a profiled cell ran for `cell_s`."""
    with kernel() as client:
        outputs_of(client, SET_UP)
        comm_id = uuid.uuid4().hex
        tell(client, "comm_open", {"comm_id": comm_id, "target_name": TARGET, "data": {}})
        received = _listened(client, CELL.format(seconds=cell_s), comm_id)
        tell(client, "comm_close", {"comm_id": comm_id, "data": {}})
        outputs = outputs_of(client, SENT)
        text = next(content["text"] for kind, content, _ in outputs if kind == "stream")
        # other widgets have comms too
        sent = [(kind, *rest) for kind, comm, *rest in json.loads(text) if comm in ("", comm_id)]
        missing = {name for _, name, _ in sent} - {name for _, name, _ in received}
        received += _late(client, missing)
    return sent, received


def _listened(client: Any, code: str, comm_id: str) -> list[Update]:
    """Run a cell and collect updates until it has ended, as a page with an open panel does."""
    cell = client.execute(code)
    received, said_s = [], time.monotonic()
    deadline_s = time.monotonic() + CELL_S + TIMEOUT_S
    while time.monotonic() < deadline_s:
        if time.monotonic() - said_s > SIGN_OF_LIFE_S:
            tell(client, "comm_msg", {"comm_id": comm_id, "data": {"cmd": "here"}})
            said_s = time.monotonic()
        message = _next(client, 1.0)
        if message is None:
            continue
        kind = message["msg_type"]
        if kind in FAMILIES.values():
            received.append((kind, message["header"]["msg_id"], time.monotonic()))
        if kind == "error":
            raise RuntimeError("\n".join(message["content"]["traceback"]))
        ours = message["parent_header"].get("msg_id") == cell
        if ours and kind == "status" and message["content"]["execution_state"] == "idle":
            return received
    raise RuntimeError("the cell did not end")


def _late(client: Any, missing: set[str]) -> list[Update]:
    found: list[Update] = []
    deadline_s = time.monotonic() + LATE_S
    while missing and time.monotonic() < deadline_s:
        message = _next(client, 0.5)
        name = message["header"]["msg_id"] if message else ""
        if message and name in missing:
            missing.discard(name)
            found.append((message["msg_type"], name, time.monotonic()))
    return found


def _next(client: Any, timeout_s: float) -> dict[str, Any] | None:
    try:
        message: dict[str, Any] = client.get_iopub_msg(timeout=timeout_s)
    except queue.Empty:
        return None
    return message


def counted(family: str, sent: Sequence[Update], received: Sequence[Update]) -> dict[str, Any]:
    """Numbers of one family of updates: sent, received, lost, out of order, most in one second."""
    ours = [(name, at_s) for kind, name, at_s in sent if kind == FAMILIES[family]]
    came = [name for kind, name, _ in received if kind == FAMILIES[family]]
    times = [at_s for _, at_s in ours]
    order = {name: index for index, (name, _) in enumerate(ours)}
    known = [order[name] for name in came if name in order]
    return {
        "sent": len(ours),
        "lost": len(order.keys() - set(came)),
        "out_of_order": sum(b < a for a, b in pairwise(known)),
        "most_a_second": most_in(times, 1.0),
        "longest_pause_s": max((b - a for a, b in pairwise(times)), default=0.0),
    }


def most_in(times: Sequence[float], span_s: float) -> int:
    """The largest number of these ascending times that any window [t, t + span) holds."""
    ends = (bisect_left(times, at_s + span_s) - index for index, at_s in enumerate(times))
    return max(ends, default=0)


if __name__ == "__main__":
    print_result(measure, __doc__)
