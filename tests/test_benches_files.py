"""The benches of reads, engines, formats and pictures: what they give, and what they refuse."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.benches import _arrays, _ring, engines, formats, images, read
from jupyter_ioscope.benches._arrays import array_or_table
from jupyter_ioscope.benches._bench import Prepared
from jupyter_ioscope.errors import InputError

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench") / "data"
    made.write_bytes(os.urandom(4 << 20))
    return made


def looks(prepared: Prepared, *names: str) -> dict[str, list[str]]:
    """What each arm (of those named) has of its own; each also runs."""
    found = {}
    for arm in prepared.arms:
        if names and arm.name not in names:
            continue
        arm.open()()
        found[f"{arm.group} {arm.name}".strip()] = list(arm.look()) if arm.look else []
    return found


def test_all_ways_to_read_give_the_same_bytes(file: Path) -> None:
    found = looks(read.prepare(str(file), ""))
    assert "warm, in order mmap, no copy" in found
    assert not any(found.values())


def test_other_bytes_would_be_noticed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = read._map

    def shifted(path: str, size: int, advice: int | None, copy: bool, take: Any = len) -> Any:
        return real(path, size // 2, advice, copy, take)

    monkeypatch.setattr(read, "_map", shifted)
    assert read._differs(str(file), 4 << 20, "mmap") == ["other bytes than read() gives"]


def test_a_file_in_memory_is_only_read_warm() -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("there is no /dev/shm to write to")
    there = memory / f"ioscope-test-{os.getpid()}"
    there.write_bytes(bytes(4 << 20))
    try:
        prepared = read.prepare(there, "")
        assert {arm.group for arm in prepared.arms} == {"warm, in order", "warm, here and there"}
        assert "keeps its files in memory" in " ".join(prepared.sentences({}))
        with pytest.raises(InputError, match="lies in memory"):
            engines.prepare(there, "")
    finally:
        there.unlink()


@pytest.mark.parametrize("prepare", [read.prepare, engines.prepare, formats.prepare])
def test_targets_that_are_no_readable_file_are_refused(
    prepare: Callable[[Any, str], Prepared], tmp_path: Path
) -> None:
    pipe, empty = tmp_path / "pipe.npy", tmp_path / "empty.npy"
    os.mkfifo(pipe)
    empty.touch()
    for target, reason in (
        (tmp_path / "none.npy", "there is no"),
        (pipe, "is a pipe"),
        (empty, r"is empty \(0 bytes\)"),
        (tmp_path, "is a folder"),
        (3.5, "target is a float"),
    ):
        with pytest.raises(InputError, match=reason):
            prepare(target, str(tmp_path))


def test_a_file_without_permission_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="may not be read"):
        read.prepare(file, "")


def test_both_engines_read_what_is_there(file: Path) -> None:
    prepared = engines.prepare(file, "", depths=(4,))
    assert not any(looks(prepared).values())
    told = engines.open_threads(str(file), 4 << 20, 4, 0.02)()
    assert told is not None
    assert told["items"] >= 4
    assert 0 < told["p50"] <= told["p99"]
    if not prepared.missing:
        told = engines.open_ring(str(file), 4 << 20, 4, 0.02)()
        assert told is not None
        assert told["items"] >= 4


def test_a_kernel_without_the_newer_kind_of_ring_gives_the_older(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engines.prepare(file, "", depths=(1,)).missing:
        pytest.skip("io_uring may not be used here")
    monkeypatch.setattr(_ring, "_OWN_THREAD", 1 << 31)  # a flag that no kernel knows
    assert engines._differs(str(file), 4 << 20, 8) == []


def test_a_ring_asks_for_two_reads_a_call_at_most_and_ends_with_none_under_way(file: Path) -> None:
    if engines.prepare(file, "", depths=(1,)).missing:
        pytest.skip("io_uring may not be used here")
    fd, depth, asked = os.open(file, os.O_RDONLY), 8, list[int]()
    ring = _ring.Ring(depth, fd, 4096)
    real = ring._call

    def call(*words: Any) -> int:
        asked.append(ring._submit.value)
        return int(real(*words))

    ring._call = call  # type: ignore[assignment]
    try:
        took, _ = ring.timed(itertools.cycle(range(0, 4 << 20, 4096)), depth, 0.02)
        assert max(asked) == 2
        assert sum(asked) == len(took) >= depth
        assert ring.completed() == []
    finally:
        ring.close()
        os.close(fd)


def test_a_ring_that_reads_something_else_is_noticed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engines.prepare(file, "", depths=(1,)).missing:
        pytest.skip("io_uring may not be used here")
    real = _ring.Ring.push
    monkeypatch.setattr(_ring.Ring, "push", lambda ring, slot, at: real(ring, slot, 0))
    assert engines._differs(str(file), 4 << 20, 8)


@pytest.mark.parametrize(
    ("code", "disabled", "reason"),
    [
        (errno.ENOSYS, "", "has no io_uring"),
        (errno.EPERM, "2", "kernel.io_uring_disabled is 2"),
        (errno.EPERM, "0", "seccomp"),
        (errno.ENOMEM, "0", "ulimit -l"),
        (errno.EMFILE, "0", "refused"),
    ],
)
def test_a_refused_io_uring_says_why_and_threads_are_timed(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int, disabled: str, reason: str
) -> None:
    def refused(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(engines, "Ring", refused)
    monkeypatch.setattr(_ring, "_sysctl", lambda name: disabled)
    prepared = engines.prepare(file, "", depths=(1,))
    assert reason in prepared.missing[0].reason
    assert [arm.name for arm in prepared.arms] == [engines.THREADS]


def test_every_format_brings_an_array_back(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    array = numpy.random.default_rng(0).normal(size=(400, 3, 4)).astype("float32")
    prepared = formats.prepare(array, str(tmp_path))
    found = looks(prepared)
    assert not any(found.values())
    assert "rows here and there NPZ, mmap_mode='r'" in found
    assert "ignored" in " ".join(prepared.sentences({}))
    assert all(arm.size_bytes > 4000 for arm in prepared.arms)


def test_a_type_that_a_format_lacks_is_a_row_that_says_so(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    prepared = formats.prepare(numpy.ones((50, 2), numpy.complex64), str(tmp_path))
    reasons = {row.name: row.reason for row in prepared.missing}
    assert "cannot hold it" in reasons["Parquet"]
    assert "NPY, memory map" in {arm.name for arm in prepared.arms}


def test_another_type_with_the_same_values_is_told_as_the_type_only(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("pyarrow")
    found = looks(formats.prepare(numpy.full((50, 2), "ab"), str(tmp_path)))
    assert found["all of it Arrow, memory map"] == ["<U2 comes back as |O"]


def test_every_format_brings_a_table_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = pandas.DataFrame({"n": range(900), "t": [f"{n}" for n in range(900)], "x": [None] * 900})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert not any(looks(formats.prepare(tmp_path / "rows.csv", str(tmp_path))).values())
    assert array_or_table(rows)[0].num_rows == 900


def test_the_reference_may_lose_a_type_and_is_told_like_the_others(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    times = arrow.array([1, 2, 3], arrow.timestamp("s"))
    found = looks(formats.prepare(arrow.table({"at": times}), str(tmp_path)))
    assert found["all of it Parquet"] == ["at: timestamp[s] comes back as timestamp[ms]"]
    assert not found["all of it Arrow, read"]


def test_of_an_archive_only_the_largest_array_is_read(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    numpy.savez(tmp_path / "a.npz", names=numpy.array([{}], dtype=object), x=numpy.ones((300, 9)))
    assert array_or_table(tmp_path / "a.npz")[0].shape == (300, 9)


def test_of_a_large_csv_file_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    lines = "".join(f"{n},{n / 7}\n" for n in range(200_000))  # several blocks of 1 MiB
    (tmp_path / "rows.csv").write_text("n,x\n" + lines)
    monkeypatch.setattr(_arrays, "MOST_BYTES", 1 << 16)
    found, _ = array_or_table(tmp_path / "rows.csv")
    assert 0 < found.num_rows < 200_000


# NumPy leaves the file open where it is no zip archive after all
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    pytest.importorskip("pyarrow")
    for name, content, reason in (
        ("a.npz", b"hello, world", "begins like b'hello, world'"),
        ("b.npz", b"\x93NUMPY and so on", "begins like an NPY file"),
        ("a.npy", b"PK\x03\x04 and so on", "begins like a zip archive"),
        ("a.parquet", b"\x93NUMPY and so on", "begins like an NPY file"),
        ("a.h5", b"hello, world, hello", "begins like b'hello, world"),
        ("a.txt", b"words", "ends with '.txt'"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=reason):
            formats.prepare(tmp_path / name, str(tmp_path))


def test_arrays_that_cannot_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    for array, reason in (
        (numpy.ones((0, 3)), r"shape \(0, 3\)"),
        (numpy.array([{}, []], dtype=object), "Python objects"),
    ):
        with pytest.raises(InputError, match=reason):
            formats.prepare(array, str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Full", (), {"free": 10})())
    with pytest.raises(InputError, match="set TMPDIR"):
        formats.prepare(numpy.ones(9), str(tmp_path))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    noise = image.effect_noise((64, 48), 60).convert("RGB")
    turned = image.Exif()
    turned[0x0112] = 6
    noise.save(tmp_path / "a.jpg")
    noise.save(tmp_path / "b.jpg", exif=turned)
    noise.convert("RGBA").save(tmp_path / "c.png")
    (tmp_path / "d.jpg").write_bytes(b"no picture")
    return tmp_path


def test_decoders_that_turn_or_change_pictures_are_found(pictures: Path) -> None:
    pytest.importorskip("cv2")
    pytest.importorskip("simplejpeg")
    prepared = images.prepare(pictures, "")
    found = looks(prepared)
    assert "1 of 3 come in another size or turned" in found["OpenCV"]
    assert "2 of 2 come in another size" in found["only the JPEGs PIL, draft at half size"][0]
    assert "pixels differ" in " ".join(found["only the JPEGs simplejpeg, fast"])
    notes = " ".join(prepared.sentences({}))
    assert "d.jpg' is left out" in notes
    assert "1 of them carry an orientation" in notes


def test_pictures_of_another_form_are_told_apart_from_turned_ones(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    pil_image = pytest.importorskip("PIL.Image")
    pytest.importorskip("imageio")
    deep = numpy.full((8, 8), 40_000, numpy.uint16)
    pil_image.fromarray(deep).save(tmp_path / "deep.png")
    pil_image.new("RGBA", (8, 8)).save(tmp_path / "clear.png")
    prepared = images.prepare(tmp_path, "")
    assert set(looks(prepared, "imageio")["imageio"]) == {
        "1 of 2 come with 1 channels instead of 3", "1 of 2 come with 4 channels instead of 3",
    }  # fmt: skip
    assert "1 of them hold more than 8 bits" in " ".join(prepared.sentences({}))


def test_folders_and_files_without_pictures_are_refused(pictures: Path) -> None:
    (pictures / "empty").mkdir()
    for target, reason in (
        (pictures / "empty", "holds no pictures"),
        (pictures / "d.jpg", "PIL decodes none of the 1 files"),
        ([], "target is empty"),
    ):
        with pytest.raises(InputError, match=reason):
            images.prepare(target, "")
