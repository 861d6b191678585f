"""A profile with a trace of block devices: counts, bytes and who asked; and the stated gap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope import api, cli, magic_line
from jupyter_ioscope.block_trace import tracefs as instances
from jupyter_ioscope.capture import block
from jupyter_ioscope.capture.block import WHAT, BlockWatch
from jupyter_ioscope.model import files
from jupyter_ioscope.model.block import BlockTrace, check_block
from jupyter_ioscope.model.check import check_profile
from tests import builders
from tests.block_values import issuer, requests, trace
from tests.io_causes import throttled, tracefs

LATENCIES = {
    f"{where}_{what}_us": 5.0
    for where in ("device", "queue")
    for what in ("mean", "p50", "p99", "p999", "worst")
}


def asked(tid: int, name: str = "python", count: int = 1, **more: Any) -> dict[str, Any]:
    row = {"device": "254,0", "operation": "read", "tid": tid, "name": name, "requests": count}
    return {**row, "bytes": 4096 * count, "device_us": 7, "queue_us": 1, "busy_us": 6, **more}


def packed(*issuers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    total = {"device": "254,0", "operation": "read", "requests": 2, "bytes": 8192}
    return {
        "totals": [{**total, **LATENCIES, "histogram": [0, 0, 2]}],
        "issuers": issuers,
        "processes": {"10": 10, "11": 10, "20": 20, "21": 20, "30": 30},
        "helper": 99,
        "events": 6,
        "unmatched": 0,
        "lost": 0,
        "seconds": 1.0,
        "knows_issuers": True,
        **changes,
    }


def named(*issuers: dict[str, Any], **changes: Any) -> BlockTrace:
    found = block.unpacked(packed(*issuers, **changes), 10, {20: 3, 40: 4}, "/nowhere")
    assert found is not None
    return found


def test_threads_are_named_by_their_part_in_the_run() -> None:
    found = named(
        asked(10), asked(11), asked(20), asked(21), asked(40), asked(30, "ffmpeg"),
        asked(77, "backup"), asked(44, "kworker/1:1H"), asked(45, "kworker/u8:2"), asked(99),
    )  # fmt: skip
    assert {(row.role, row.worker, row.name): row.requests for row in found.issuers} == {
        ("consumer", -1, ""): 2,
        ("worker", 3, ""): 2,
        ("worker", 4, ""): 1,  # its process was too short-lived for the list of threads
        ("child", -1, "ffmpeg"): 1,
        ("other", -1, "backup"): 1,
        ("other", -1, "kworker"): 2,
        ("other", -1, "ioscope"): 1,
    }
    assert {row.device for row in found.issuers} == {"254:0"}
    assert found.requests[0].p99_s == pytest.approx(5e-6)
    assert check_block(found) == []


def test_many_programs_become_one_without_a_name() -> None:
    found = named(*(asked(1000 + n, f"program{n}", count=100 - n) for n in range(50)), asked(20))
    others = [row for row in found.issuers if row.role == "other"]
    assert [row.name for row in others] == [*(f"program{n}" for n in range(8)), ""]
    assert sum(row.requests for row in others) == sum(range(51, 101))
    assert [row.worker for row in found.issuers if row.role == "worker"] == [3]


def test_where_processes_are_counted_otherwise_nobody_is_named() -> None:
    found = named(asked(10), knows_issuers=False)
    assert found.issuers == ()
    assert found.requests[0].requests == 2


def test_a_profile_keeps_its_trace_in_a_file_and_older_files_have_none(tmp_path: Path) -> None:
    profile = builders.without(
        builders.profile(1, batches=4),
        block=trace(issuer(), issuer("other", -1, name="x"), rows=[requests(), requests("sda")]),
    )
    path = tmp_path / "p.ioscope.json"
    files.save(profile, path)
    assert files.load(path).block == profile.block
    document = json.loads(path.read_text())
    del document["profile"]["block"]
    path.write_text(json.dumps(document))
    assert files.load(path).block is None


@pytest.mark.parametrize(
    "wrong",
    [
        trace(rows=[requests()._replace(requests=5)]),
        trace(rows=[requests(operation="stare")]),
        trace(issuer("stranger")),
    ],
)
def test_a_trace_that_contradicts_itself_is_told(wrong: BlockTrace) -> None:
    assert check_profile(builders.without(builders.profile(1, batches=4), block=wrong))


def test_a_trace_that_nobody_asked_for_costs_nothing_and_is_no_gap(tmp_path: Path) -> None:
    watch = BlockWatch(False, str(tmp_path), str(tmp_path))
    watch.tick()
    assert (watch.due_s(), watch.gaps, watch.finish([])) == (float("inf"), [], None)


class Instance:
    """In the place of a trace: gives pieces of text, then an error or nothing."""

    def __init__(self, *pieces: bytes, lost: int = 0, error: OSError | None = None) -> None:
        self.pieces, self.closed, self.stopped = list(pieces), 0, False
        self._lost, self._error = lost, error

    def read(self) -> bytes:
        if not self.pieces and self._error is not None:
            raise self._error
        return self.pieces.pop(0) if self.pieces else b""

    def stop(self) -> None:
        self.stopped = True

    def lost(self) -> int:
        return self._lost

    def close(self) -> None:
        self.closed += 1


LINES = (
    b"  dd-5 [000] ..... 1.000001: block_rq_issue: 8,0 R 4096 () 8 + 8 be,0,4 [dd]\n",
    b"  dd-5 [000] ..... 1.000031: block_rq_complete: 8,0 R () 8 + 8 be,0,4 [0]\n",
)


@pytest.fixture
def watch_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Instance], BlockWatch]:
    def made(instance: Instance) -> BlockWatch:
        monkeypatch.setattr(instances, "find", lambda proc, sys: "/nowhere")
        monkeypatch.setattr(instances, "Instance", lambda folder, proc: instance)
        return BlockWatch(True, "/proc", "/sys")

    return made


def test_what_is_left_in_the_buffer_is_read_at_the_end(
    watch_of: Callable[[Instance], BlockWatch],
) -> None:
    instance = Instance(LINES[0][:30], LINES[0][30:], LINES[1], lost=12)
    watch = watch_of(instance)
    done = watch.finish([(5, 5)])
    assert done is not None
    assert (instance.stopped, instance.closed) == (True, 1)
    assert done["totals"][0]["device_mean_us"] == 30
    assert done["lost"] == 12
    assert any("12 events" in gap.reason for gap in watch.gaps)
    watch.close()
    assert instance.closed == 1


def test_a_trace_that_breaks_off_is_a_gap_and_is_removed(
    watch_of: Callable[[Instance], BlockWatch],
) -> None:
    instance = Instance(*LINES, error=OSError(5, "Input/output error"))
    watch = watch_of(instance)
    watch.tick()
    assert instance.closed == 1
    assert watch.gaps[0][0] == WHAT
    assert "broke off: Input/output error" in watch.gaps[0][1]
    assert watch.finish([]) is None


def test_a_flood_of_requests_holds_up_the_helper_for_a_bounded_time(
    watch_of: Callable[[Instance], BlockWatch],
) -> None:
    instance = Instance(*LINES * 100_000)
    watch = watch_of(instance)
    watch.tick()
    assert len(instance.pieces) > 0


# -- real ------------------------------------------------------------------------------------------

LOADER = """
import json, mmap, os, random, signal, sys
import torch
from torch.utils.data import DataLoader, Dataset
from jupyter_ioscope import api
from jupyter_ioscope.capture.sampler import Sampler
from jupyter_ioscope.views.text import report_text

SIZE = 1 << 16
ITEMS = os.path.getsize(PATH) // SIZE
torch.set_num_threads(1)

class Direct(Dataset):
    def __len__(self):
        return ITEMS
    def __getitem__(self, index):
        # Never two neighbours one after the other: the scheduler would make one request of them.
        place = (index * 37) % ITEMS
        fd = os.open(PATH, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, SIZE) as buffer:
            os.preadv(fd, [buffer], place * SIZE)
        os.close(fd)
        return index

def ours():
    return [name for name in os.listdir(FOLDER + "/instances") if name.startswith("ioscope-")]

with api.profile(block_trace=True, stacks=False) as p:
    for _ in DataLoader(Direct(), batch_size=16, num_workers=2):
        pass
rows = [r for r in p.profile.block.issuers if r.role == "worker" and r.operation == "read"]
device = p.profile.block.of(rows[0].device, "read")
first_left = ours()
with api.profile(block_trace=True, stacks=False) as killed:
    during = ours()
    os.kill(Sampler.helper_pid(), signal.SIGKILL)
print(json.dumps({
    "items": ITEMS, "requests": sum(r.requests for r in rows), "bytes": sum(r.bytes for r in rows),
    "workers": sorted({r.worker for r in rows}), "devices": sorted({r.device for r in rows}),
    "latencies": [device.p50_s, device.p99_s, device.p999_s, device.worst_s],
    "busy_s": sum(r.busy_s for r in rows), "wall_s": p.profile.wall_s,
    "text": report_text(p.profile, p.diagnosis), "left": [first_left, ours()],
    "during": len(during),
    "killed": killed.profile.block is None,
    "gaps": [gap.what for gap in killed.profile.not_measured], "lost": p.profile.block.lost,
}))
"""

# Whatever tracefs this machine has, the recording below does not see it.
UNSEEN = """
import ctypes, json, os
kinds = ("tracefs", "debugfs")
if os.geteuid() == 0:
    for line in open("/proc/self/mounts").readlines():
        if line.split()[2] in kinds:
            ctypes.CDLL(None).umount2(line.split()[1].encode(), 2)
from jupyter_ioscope import api
with api.profile(block_trace=True, stacks=False) as p:
    sum(range(100_000))
print(json.dumps({
    "block": p.profile.block is None, "threads": len(p.profile.threads), "text": str(p),
    "gaps": {gap.what: gap.reason for gap in p.profile.not_measured},
}))
"""


# A kernel that is killed while it records, and a helper process that is asked to end.
RECORDS = """
import time
from jupyter_ioscope import api
from jupyter_ioscope.capture.sampler import Sampler
with api.profile(block_trace=True, stacks=False):
    print(Sampler.helper_pid(), flush=True)
    time.sleep(60)
"""
KILLED = """
import json, os, signal, subprocess, sys, time

def ours():
    return [name for name in os.listdir(FOLDER + "/instances") if name.startswith("ioscope-")]

found = []
for whom in ("kernel", "helper"):
    with subprocess.Popen([sys.executable, "-c", RECORDS], stdout=-1, text=True) as kernel:
        helper = int(kernel.stdout.readline())
        found.append(len(ours()))
        if whom == "kernel":
            kernel.kill()
        else:
            os.kill(helper, signal.SIGTERM)
        until_s = time.monotonic() + 30
        while ours() and time.monotonic() < until_s:
            time.sleep(0.05)
        found.append(len(ours()))
        kernel.kill()
print(json.dumps(found))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of 384 items of 64 KiB, on the disk."""
    if not throttled.device_of(tmp_path):
        pytest.skip(f"no block device lies below {tmp_path}")
    path = tmp_path / "data"
    with open(path, "wb") as file:
        for _ in range(24):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o644)
    return path


@pytest.mark.timeout(300)
def test_a_real_loaders_requests_are_counted_and_named_and_nothing_is_left(
    data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "tracing"
    folder.mkdir()
    if reason := tracefs.why_not(folder):
        pytest.skip(reason)
    done = tracefs.run(folder, f"PATH, FOLDER = {str(data)!r}, {str(folder)!r}\n{LOADER}")
    if "Invalid argument" in done.stderr:
        pytest.skip("this file system takes no O_DIRECT")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if found["lost"]:
        pytest.skip("other programs ask the disks for more than can be read")
    assert found["bytes"] == pytest.approx(found["items"] * 65536, rel=0.05)
    assert found["requests"] == pytest.approx(found["items"], rel=0.1)
    assert found["workers"] == [0, 1]
    p50_s, p99_s, p999_s, worst_s = found["latencies"]
    assert 0 < p50_s <= p99_s <= p999_s <= worst_s < found["wall_s"]
    assert 0 < found["busy_s"] <= 2 * found["wall_s"]
    assert f"{found['devices'][0]} reads" in found["text"]
    assert found["left"] == [[], []]
    assert found["during"] == 1
    assert found["killed"]
    assert found["gaps"]


@pytest.mark.timeout(150)
def test_a_killed_kernel_and_a_helper_that_is_told_to_end_leave_no_trace(tmp_path: Path) -> None:
    if reason := tracefs.why_not(tmp_path):
        pytest.skip(reason)
    names = f"FOLDER, RECORDS = {str(tmp_path)!r}, {RECORDS!r}\n"
    done = tracefs.run(tmp_path, names + KILLED)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [1, 0, 1, 0]


def test_every_door_can_ask_for_it() -> None:
    usual, wanted = magic_line.parse(""), magic_line.parse("--block-trace")
    assert (usual.capture.block_trace, wanted.capture.block_trace) == (False, True)
    assert api.profile(block_trace=True)._options.block_trace
    assert cli._parser().parse_args(["record", "--block-trace", "x.py"]).block_trace


@pytest.mark.timeout(120)
def test_without_rights_the_profile_is_whole_and_says_what_it_lacks() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("tracefs is there on Linux only")
    command = [sys.executable, "-c", UNSEEN]
    if os.geteuid() == 0:
        if shutil.which("unshare") is None:
            pytest.skip("unshare (util-linux) is not installed")
        command = ["unshare", "--mount", "--propagation", "private", *command]
    environment = {**os.environ, "PYTHONPATH": tracefs.ROOT}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    if "unshare failed" in done.stderr:
        pytest.skip(f"no mounts of one's own here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["block"]
    assert found["threads"] > 0
    reason = found["gaps"][WHAT]
    assert "not mounted here" in reason or "may not be read and written" in reason
    assert f"Not measured: {WHAT}" in " ".join(found["text"].split())
