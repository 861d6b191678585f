"""Tracing block devices: CPU of the helper process a request, and of the program that asks.

One thread reads 4 KiB at scattered places of a file, past the page cache, with and without the
trace in turns. Needs root (a mount of tracefs of its own) and a disk that takes O_DIRECT.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.measure import print_result
from tests.io_causes import throttled, tracefs

REQUESTS, QUICK_REQUESTS = 20_000, 5_000
PAIRS, QUICK_PAIRS = 8, 3
SIZE = 64 << 20
CODE = """
import json, mmap, os, random, time
from jupyter_ioscope import api

def read(fd, buffer, places):
    before = time.thread_time()
    for place in places:
        os.preadv(fd, [buffer], place)
    return time.thread_time() - before

rows = []
fd = os.open(PATH, os.O_RDONLY | os.O_DIRECT)
buffer = mmap.mmap(-1, 4096)
for number in range(2 * PAIRS + 1):
    places = [random.randrange(SIZE // 4096) * 4096 for _ in range(REQUESTS)]
    with api.profile(block_trace=number % 2 == 1, stacks=False) as p:
        used_s = read(fd, buffer, places)
    traced = p.profile.block
    rows.append({
        "traced": traced is not None, "helper_s": p.cost.sampler_cpu_s, "wall_s": p.profile.wall_s,
        "reader_s": used_s, "events": traced.events if traced else 0,
        "lost": traced.lost if traced else 0,
    })
print(json.dumps(rows[1:]))  # the first one starts the helper process
"""


def measure(quick: bool) -> dict[str, Any]:
    requests, pairs = (QUICK_REQUESTS, QUICK_PAIRS) if quick else (REQUESTS, PAIRS)
    with tempfile.TemporaryDirectory() as place:
        folder, path = Path(place) / "tracing", Path(place) / "data"
        folder.mkdir()
        why_not = tracefs.why_not(folder)
        if not throttled.device_of(folder):
            why_not = f"no block device lies below {folder}"
        if why_not:
            return {"skipped": why_not}
        path.write_bytes(os.urandom(SIZE))
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        names = f"PATH, SIZE, REQUESTS, PAIRS = {str(path)!r}, {SIZE}, {requests}, {pairs}\n"
        done = tracefs.run(folder, names + CODE)
    if done.returncode:
        return {"skipped": done.stderr.strip().splitlines()[-1]}
    return summary(json.loads(done.stdout), requests)


def summary(rows: list[dict[str, Any]], requests: int) -> dict[str, Any]:
    """Microseconds a request: medians over the pairs, and their range."""
    plain = [row for row in rows if not row["traced"]]
    traced = [row for row in rows if row["traced"]]
    pairs = list(zip(traced, plain, strict=True))
    helper = sorted(
        1e6 * (a["helper_s"] - b["helper_s"] / b["wall_s"] * a["wall_s"]) / requests
        for a, b in pairs
    )
    reader = sorted(1e6 * (a["reader_s"] - b["reader_s"]) / requests for a, b in pairs)
    return {
        "helper_us": [statistics.median(helper), helper[0], helper[-1]],
        "reader_us": [statistics.median(reader), reader[0], reader[-1]],
        "plain_us": 1e6 * statistics.median(row["reader_s"] for row in plain) / requests,
        "requests_per_s": statistics.median(requests / row["wall_s"] for row in traced),
        "events": sum(row["events"] for row in traced),
        "lost": sum(row["lost"] for row in traced),
    }


if __name__ == "__main__":
    print_result(measure, __doc__)
