"""Records cost little, however large a batch is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_ioscope.capture import records


def test_looking_at_batches_takes_at_most_a_hundredth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = looking_ns = 0

    def look(data: object) -> tuple[int, int]:
        nonlocal now_ns, looking_ns
        now_ns += 2_000_000
        looking_ns += 2_000_000
        return 5_000, 40_000

    monkeypatch.setattr(records, "batch_size_of", look)
    monkeypatch.setattr("jupyter_ioscope.capture.records.time.monotonic_ns", lambda: now_ns)
    size_of = records.SizeOfBatch()
    for _ in range(2_000):
        assert size_of([]) == (5_000, 40_000)
        now_ns += 350_000
    assert looking_ns > 2_000_000, "it is looked at again after a while"
    assert looking_ns - 2_000_000 <= 0.01 * now_ns


def log_in(folder: Path) -> records.WorkerLog:
    return records.WorkerLog(str(folder), worker=1, loader=2, epoch=3, created_ns=4)


def write_some(log: records.WorkerLog, number: int) -> None:
    for task in range(number):
        start = records.usage()
        log.fetch(start, records.usage(), 0, task, 0, 5, (6, 7))


def test_a_workers_records_come_back_whatever_their_number(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    write_some(log, 3_000)
    log.close()
    (file,) = records.read_worker_files(str(tmp_path))
    assert [fetch.task for _, fetch in file.fetches] == list(range(3_000))
    assert {(f.worker, f.loader, f.samples, f.tensors, f.batch_bytes) for _, f in file.fetches} == {
        (1, 2, 5, 6, 7)
    }
    assert file.info.created_ns == 4
    assert file.info.entered_ns < file.info.left_ns
    assert file.info.records_lost == 0


def test_records_of_a_worker_that_is_still_running_or_was_killed_can_be_read(
    tmp_path: Path,
) -> None:
    log = log_in(tmp_path)
    write_some(log, 10)
    (file,) = records.read_worker_files(str(tmp_path))
    assert len(file.fetches) == 10
    assert file.info.left_ns == -1
    log.close()


def test_a_worker_that_outlives_its_profile_stops_writing(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    (path,) = tmp_path.iterdir()
    path.unlink()
    write_some(log, 2_000)
    assert log._fd == -1
    log.close()


def test_a_full_disk_loses_records_and_says_how_many(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.test_capture_records import log_in, write_some\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "log = log_in(Path(sys.argv[1]))\n"
        "write_some(log, 2_000)\n"
        "print(log.lost)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 0, done.stderr
    (file,) = records.read_worker_files(str(tmp_path))
    assert 100 < len(file.fetches) < 2_000
    assert len(file.fetches) + int(done.stdout) == 2_000
