"""Per-mount NFS counters from the text of `/proc/self/mountstats`.

Format: the kernel's fs/nfs/super.c and net/sunrpc/stats.c; "statvers=1.0" and "1.1" are known. A
line of an operation holds: operations, transmissions, timeouts, bytes sent, bytes received, and the
milliseconds of all operations in the queue, on the way, and in all; since 5.3 the errors as well.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from jupyter_ioscope.model.storage import NfsMount, NfsOperation
from jupyter_ioscope.storage.mounts import unescaped

_HEAD = re.compile(r"^device (\S+) mounted on (\S+) with fstype (\S+)(?: statvers=(\S+))?")
_OPERATION = re.compile(r"^\s*([A-Z][A-Z0-9_]*):((?: \d+){8,})\s*$")


def parse(text: str) -> tuple[NfsMount, ...]:
    """Every NFS mount with counters; what is not of the documented form is left out."""
    return tuple(mount for block in _blocks(text) if (mount := _mount(block)) is not None)


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in text.split("\n"):
        if line.startswith("device "):
            if block:
                yield block
            block = []
        block.append(line)
    if block:
        yield block


def _mount(lines: list[str]) -> NfsMount | None:
    head = _HEAD.match(lines[0])
    if head is None or not head[3].startswith("nfs") or head[4] is None:
        return None
    fields: dict[str, str] = {}
    connections = 0
    operations = []
    for line in lines[1:]:
        name, _, rest = line.strip().partition(":")
        if name == "xprt":
            connections += 1
        elif (found := _OPERATION.match(line)) is not None:
            operations.append(_operation(found[1], [int(word) for word in found[2].split()]))
        else:
            fields.setdefault(name, rest.strip())
    moved = _numbers(fields.get("bytes", ""))
    options = dict(part.partition("=")[::2] for part in fields.get("opts", "").split(","))
    age = _numbers(fields.get("age", ""))
    return NfsMount(
        mount_point=unescaped(head[2]),
        source=unescaped(head[1]),
        version=options.get("vers", ""),
        age_s=age[0] if age else -1,
        connections=connections,
        read_bytes=moved[0] if len(moved) > 4 else -1,
        server_read_bytes=moved[4] if len(moved) > 4 else -1,
        operations=tuple(row for row in operations if row.operations > 0),
    )


def _operation(name: str, numbers: list[int]) -> NfsOperation:
    operations, sent, timeouts, out, back, queue, rtt, total = numbers[:8]
    per = 1000 * max(1, operations)
    return NfsOperation(
        name=name,
        operations=operations,
        repeats=max(0, sent - operations),
        timeouts=timeouts,
        sent_bytes=out,
        received_bytes=back,
        queue_s=queue / per,
        rtt_s=rtt / per,
        total_s=total / per,
        errors=numbers[8] if len(numbers) > 8 else -1,
    )


def _numbers(text: str) -> list[int]:
    with contextlib.suppress(ValueError):
        return [int(word) for word in text.split()]
    return []


def since(before: NfsMount, after: NfsMount) -> NfsMount:
    """What happened between two readings of one mount; means are of the operations in between."""
    old = {row.name: row for row in before.operations}
    rows = []
    for row in after.operations:
        was = old.get(row.name)
        count = row.operations - (was.operations if was else 0)
        if was is None:
            rows.append(row)
        elif count > 0:
            rows.append(
                row._replace(
                    operations=count,
                    repeats=row.repeats - was.repeats,
                    timeouts=row.timeouts - was.timeouts,
                    sent_bytes=row.sent_bytes - was.sent_bytes,
                    received_bytes=row.received_bytes - was.received_bytes,
                    queue_s=_mean(row.queue_s, row.operations, was.queue_s, was.operations),
                    rtt_s=_mean(row.rtt_s, row.operations, was.rtt_s, was.operations),
                    total_s=_mean(row.total_s, row.operations, was.total_s, was.operations),
                    errors=-1 if row.errors < 0 else row.errors - max(0, was.errors),
                )
            )
    return NfsMount(
        after.mount_point,
        after.source,
        after.version,
        after.age_s - before.age_s,
        after.connections,
        after.read_bytes - before.read_bytes,
        after.server_read_bytes - before.server_read_bytes,
        tuple(rows),
    )


def _mean(late_s: float, late: int, early_s: float, early: int) -> float:
    return max(0.0, (late_s * late - early_s * early) / (late - early))
