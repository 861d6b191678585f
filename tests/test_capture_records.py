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

    def look(data: object) -> records.BatchSize:
        nonlocal now_ns, looking_ns
        now_ns += 2_000_000
        looking_ns += 2_000_000
        return records.BatchSize(5_000, 40_000)

    monkeypatch.setattr(records, "batch_size_of", look)
    monkeypatch.setattr("jupyter_ioscope.capture.records.time.monotonic_ns", lambda: now_ns)
    size_of = records.SizeOfBatch()
    for _ in range(2_000):
        assert size_of([]).objects == 5_000
        now_ns += 350_000
    assert looking_ns > 2_000_000, "it is looked at again after a while"
    assert looking_ns - 2_000_000 <= 0.01 * now_ns


SIZE = records.BatchSize(6, 7, 3)


def log_in(folder: Path) -> records.WorkerLog:
    return records.WorkerLog(str(folder), worker=1, loader=2, epoch=3, created_ns=4)


def write_some(log: records.WorkerLog, number: int) -> None:
    for task in range(number):
        start = records.usage()
        log.fetch(start, records.usage(), 0, task, 0, 5, SIZE)


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


def test_short_fetches_are_like_the_one_before_that_was_read_in_full(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    start, end = records.usage(), records.usage()
    log.fetch((1_000, 500, start[2]), (2_000, 1_300, end[2]), 1_900, 7, 2, 5, SIZE, 8)
    for task in range(8, 2_000):
        log.short_fetch(task * 10_000, task * 10_000 + 500, 0, task, 4)
    log.fetch((3_000, 500, start[2]), (5_000, 1_300, end[2]), 0, 2_000, 2, 5, SIZE)
    log.close()
    (file,) = records.read_worker_files(str(tmp_path))
    assert [fetch.task for _, fetch in file.fetches] == list(range(7, 2_001))
    assert {resumed for resumed, _ in file.fetches} == {2}
    full, short = file.fetches[0][1], file.fetches[1][1]
    assert (full.cpu_ns, full.collate_ns, full.samples, full.digest) == (800, 100, 5, 8)
    assert (short.start_ns, short.end_ns, short.cpu_ns) == (80_000, 80_500, 400)
    assert (short.collate_ns, short.samples, short.digest) == (0, 4, 0)
    assert (short.tensors, short.batch_bytes, short.double_bytes) == (6, 7, 3)
    assert short.minor_faults == full.minor_faults
    assert file.info.left_ns > 0


def test_a_record_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    write_some(log, 3)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    size = records._FETCH.size
    second = records._HEADER.size + size
    torn = whole[: second + size - 8] + bytes(len(whole) - second - size + 8)
    path.write_bytes(torn)
    (file,) = records.read_worker_files(str(tmp_path))
    assert [fetch.task for _, fetch in file.fetches] == [0]


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


@pytest.mark.timeout(240)
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


def test_bytes_in_doubles_are_counted_apart() -> None:
    numpy = pytest.importorskip("numpy")
    batch = {"x": numpy.zeros(10), "y": [numpy.zeros(10, "f4"), numpy.zeros(10, "i8"), 1.5]}
    assert records.batch_size_of(batch) == records.BatchSize(4, 80 + 40 + 80 + 8, 80)


def test_so_are_those_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    pair = (torch.zeros(4, dtype=torch.float64), torch.zeros(4))
    assert records.batch_size_of(pair).double_bytes == 32
