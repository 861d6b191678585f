"""NFS counters from texts of `mountstats` as several kernels write them."""

from __future__ import annotations

import pytest

from jupyter_ioscope.storage import filesystems, mountstats

# Kernel 3.10 (statvers=1.0, RPC 1.0, eight counters an operation, NFS 3 over TCP).
OLD = """\
device rootfs mounted on / with fstype rootfs
device 10.0.0.8:/export mounted on /old with fstype nfs statvers=1.0
\topts:\trw,vers=3,rsize=65536,wsize=65536,namlen=255,hard,proto=tcp,sec=sys
\tage:\t3600
\tcaps:\tcaps=0x3fc7,wtmult=4096,dtsize=8192,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t10 20 0 0 5 7 100 0 0 8 0 9 3 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t4000000 0 0 0 1000000 0 250 0
\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)
\txprt:\ttcp 735 1 1 0 10 500 500 0 900 0
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t     GETATTR: 200 200 0 24000 22400 20 400 440
\t      LOOKUP: 50 52 2 6000 5600 0 250 260
\t        READ: 100 100 0 12000 1012800 100 500 650

"""
# Kernel 5.15/6.8 (statvers=1.1, RPC 1.1, errors as ninth counter, NFS 4.2, nconnect=2).
NEW = """\
device /dev/vda1 mounted on / with fstype ext4
device store.example:/sets mounted on /my\\040data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,hard,\
nconnect=2,proto=tcp,sec=sys,clientaddr=10.0.0.2,local_lock=none
\tage:\t120
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x3ffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,bm2=0x68800,acl=0x3,sessions,pnfs=not configured,\
lease_time=90,lease_expired=0
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t900 0 0 0 900 0 1 0
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 1 2 0 0 300 300 0 310 0 2 11 299
\txprt:\ttcp 0 1 2 0 0 299 299 0 310 0 2 10 298
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 40 41 1 8000 42000000 4 200 212 0
\t        OPEN: 10 10 0 3000 4000 0 12 13 2
\tREAD_PLUS: 2 2 0 3 4 0 6 6 0

"""


def test_an_old_kernels_text_gives_means_for_one_operation() -> None:
    (mount,) = mountstats.parse(OLD)
    assert (mount.mount_point, mount.source, mount.version) == ("/old", "10.0.0.8:/export", "3")
    assert (mount.age_s, mount.connections) == (3600, 1)
    assert (mount.read_bytes, mount.server_read_bytes) == (4_000_000, 1_000_000)
    rows = {row.name: row for row in mount.operations}
    assert set(rows) == {"GETATTR", "LOOKUP", "READ"}  # those that were never used are left out
    read = rows["READ"]
    assert (read.queue_s, read.rtt_s, read.total_s) == pytest.approx((0.001, 0.005, 0.0065))
    assert (rows["LOOKUP"].repeats, rows["LOOKUP"].timeouts, read.errors) == (2, 2, -1)


def test_a_new_kernels_text_gives_errors_and_all_connections() -> None:
    (mount,) = mountstats.parse(NEW)
    assert (mount.mount_point, mount.version, mount.connections) == ("/my data", "4.2", 2)
    rows = {row.name: row for row in mount.operations}
    assert rows["READ"].rtt_s == pytest.approx(0.005)
    assert rows["OPEN"].errors == 2
    assert rows["READ_PLUS"].rtt_s == pytest.approx(0.003)


def test_what_happened_between_two_readings() -> None:
    later = NEW.replace("age:\t120", "age:\t150").replace(
        "READ: 40 41 1 8000 42000000 4 200 212 0", "READ: 50 52 1 9000 52000000 4 300 320 1"
    )
    (before,), (after,) = mountstats.parse(NEW), mountstats.parse(later)
    change = mountstats.since(before, after)
    (read,) = change.operations
    assert (change.age_s, read.operations, read.repeats, read.errors) == (30, 10, 1, 1)
    assert read.rtt_s == pytest.approx(0.010)  # 100 ms for 10 reads, whatever came before
    assert read.received_bytes == 10_000_000


def test_the_counters_belong_to_the_file_system_of_their_mount() -> None:
    table = "1 0 0:44 / /my\\040data rw,relatime - nfs4 store.example:/sets rw,vers=4.2"
    found = filesystems.of_path("/my data/x", table, OLD + NEW)
    assert found.nfs is not None
    assert found.nfs.mount_point == "/my data"
    assert filesystems.of_path("/my data/x", table, OLD).nfs is None


def test_a_check_tells_what_the_client_did_meanwhile() -> None:
    before = mountstats.parse(OLD + NEW)
    (after,) = mountstats.parse(NEW.replace("READ: 40 41 1", "READ: 50 51 1"))
    during = filesystems.nfs_since(before, after)
    assert during is not None
    assert [(row.name, row.operations) for row in during.operations] == [("READ", 10)]
    assert filesystems.nfs_since((), after) is None
    assert filesystems.nfs_since(before, None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "device",
        "device a mounted on b",
        "device a mounted on /b with fstype nfs",  # no counters
        "\0" * 100,
        "per-op statistics\n READ: 1 2 3 4 5 6 7 8",
    ],
)
def test_malformed_texts_give_nothing(text: str) -> None:
    assert mountstats.parse(text) == ()


@pytest.mark.parametrize(
    "damage",
    [
        ("age:\t120", "age:\tsoon"),
        ("bytes:\t900 0 0 0 900 0 1 0", "bytes:\t"),
        ("bytes:\t900 0 0 0 900 0 1 0", "bytes:\tx y"),
        ("READ: 40 41 1 8000 42000000 4 200 212 0", "READ: 40 41"),
        ("READ: 40 41 1 8000 42000000 4 200 212 0", "READ: a b c d e f g h"),
        ("opts:\trw,vers=4.2", "opts:"),
    ],
)
def test_a_damaged_line_costs_that_line_only(damage: tuple[str, str]) -> None:
    (mount,) = mountstats.parse(NEW.replace(*damage))
    assert "OPEN" in {row.name for row in mount.operations}


def test_a_text_cut_off_anywhere_raises_nothing() -> None:
    for end in range(0, len(NEW), 7):
        mountstats.parse(NEW[:end])
