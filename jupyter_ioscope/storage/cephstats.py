"""Counters of the kernel's CephFS client, from `/sys/kernel/debug/ceph/<fsid>.client<id>/metrics`.

Format: the kernel's fs/ceph/debugfs.c. `metrics` is a folder with a file `latency` since 5.14, and
one file that begins with the same table from 5.8 on; its columns are read by their names, since
early ones lack some. Only root may look there, and only where debugfs is mounted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from jupyter_ioscope.model.storage import CephOperation

FOLDER = "/sys/kernel/debug/ceph"
_US = 1e-6


def parse(text: str) -> tuple[CephOperation, ...]:
    """The table of latencies; rows of operations that were never made, or of another form, are left
    out."""
    head: list[str] = []
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["item", "total"]:
            head = words if any(word.endswith("_lat(us)") for word in words) else []
        elif head and len(words) == len(head) and all(word.isdigit() for word in words[1:]):
            row = dict(zip(head[1:], map(int, words[1:]), strict=True))
            if row["total"] > 0:
                found.append(_operation(words[0], row))
    return tuple(found)


def _operation(name: str, row: Mapping[str, int]) -> CephOperation:
    def seconds(column: str) -> float:
        return row[column] * _US if column in row else -1.0

    mean_s = seconds("avg_lat(us)")
    return CephOperation(name, row["total"], mean_s, seconds("max_lat(us)"), seconds("stdev(us)"))


def of_source(source: str, folder: str = FOLDER) -> tuple[tuple[CephOperation, ...], str]:
    """(operations of the client that serves a mount, why there are none).

    `source` is that of the mount: `name@fsid.fs=/path` names the cluster, `mon1,mon2:/path` does
    not, and then only a single client is surely the one.
    """
    try:
        clients = os.listdir(folder)
    except OSError as error:
        return (), f"{folder} cannot be read: {error.strerror or error}"
    fsid = source.partition("@")[2].partition(".")[0]
    own = [name for name in clients if fsid and name.startswith(f"{fsid}.")] or clients
    if len(own) != 1:
        return (), f"{folder} lists {len(own)} clients, and the mount does not say which is its own"
    for name in ("metrics/latency", "metrics"):
        try:
            with open(os.path.join(folder, own[0], name), encoding="utf-8") as file:
                return parse(file.read()), ""
        except (OSError, UnicodeDecodeError):
            continue
    return (), "this kernel keeps no latencies of its CephFS client (it does from 5.8 on)"
