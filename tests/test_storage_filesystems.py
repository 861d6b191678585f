"""Which file system a path lies on, from recorded mount tables: kind, promises, harmful options."""

from __future__ import annotations

import pytest

from jupyter_ioscope.model.storage import FileSystem
from jupyter_ioscope.storage import filesystems, kinds, mounts
from jupyter_ioscope.storage.mount_options import harmful
from tests import builders

# As kernels 4.18 to 6.8 write it: optional fields before the dash, blanks as octal numbers.
TABLE = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
31 22 0:28 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,size=65536k
40 22 0:44 / /data rw,noatime shared:9 - nfs4 store.example:/sets rw,vers=4.2,rsize=1048576,\
wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,addr=10.0.0.7
41 22 0:45 / /old rw,relatime - nfs 10.0.0.8:/export rw,vers=3,rsize=32768,wsize=32768,noac,\
soft,proto=udp,mountaddr=10.0.0.8,addr=10.0.0.8
42 22 0:46 / /mnt/my\\040photos ro,relatime - fuse.sshfs user@host:/photos ro,max_read=65536
43 22 0:47 / /s3 rw,relatime - fuse.s3fs s3fs rw,user_id=0
44 22 0:48 / /smb rw,relatime - cifs //nas.example/share rw,vers=1.0,cache=none,rsize=61440
45 22 0:49 / /ceph rw,relatime - ceph 10.1.0.1,10.1.0.2:/ rw,name=admin,acl
46 22 0:50 / /host rw,relatime - 9p share rw,msize=8192,trans=virtio
47 22 0:51 / /merged rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
48 40 254:2 / /data/local rw - xfs /dev/vdb rw,sync
49 22 0:52 / /lazy rw,relatime - fuse slow rw
50 22 0:53 / /s3 rw,relatime - tmpfs none rw
"""


def found(path: str) -> FileSystem:
    return filesystems.of_path(path, TABLE, "")


@pytest.mark.parametrize(
    ("path", "name", "family"),
    [
        ("/home/a", "ext4", "local"),
        ("/dev/shm/x", "tmpfs (memory)", "memory"),
        ("/data/set", "NFS 4.2", "network"),
        ("/old", "NFS 3", "network"),
        ("/mnt/my photos/1.jpg", "SSHFS, FUSE", "fuse"),
        ("/smb/x", "SMB", "network"),
        ("/ceph/x", "CephFS", "network"),
        ("/host/x", "9p (a folder of the host)", "host"),
        ("/merged/x", "overlay (a container's layers)", "overlay"),
        ("/data/local/x", "XFS", "local"),
        ("/database", "ext4", "local"),  # not below /data
        ("/lazy/x", "FUSE (slow)", "fuse"),
        ("/s3/x", "tmpfs (memory)", "memory"),  # mounted over, later
    ],
)
def test_a_path_lies_on_the_innermost_latest_mount(path: str, name: str, family: str) -> None:
    assert (found(path).name, found(path).family) == (name, family)


@pytest.mark.parametrize(
    ("server", "name"),
    [("s3fs", "s3fs (S3), FUSE"), ("gcsfuse", "gcsfuse (Google Cloud Storage), FUSE")],
)
def test_mounts_of_object_stores_promise_no_rename(server: str, name: str) -> None:
    kind = kinds.of_mount(f"fuse.{server}")
    assert (kind.name, kind.family) == (name, "object store")
    assert {row.what: row.holds for row in kind.promises}["atomic rename"] == "no"


def test_nfs_promises_what_close_to_open_means_and_no_atomic_append() -> None:
    promises = {row.what: row.holds for row in found("/data").promises}
    assert promises["close-to-open"] == "yes"
    assert promises["atomic append"] == "no"
    assert promises["locks"] == "yes"
    assert {row.what: row.holds for row in found("/old").promises}["locks"] == "depends"


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/data", []),
        ("/old", ["noac", "rsize=32768", "soft", "proto=udp"]),
        ("/mnt/my photos", ["max_read=65536"]),
        ("/smb", ["cache=none", "vers=1.0", "rsize=61440"]),
        ("/host", ["msize=8192", "cache=none"]),
        ("/data/local", ["sync", "strictatime"]),  # neither relatime nor noatime is listed
        ("/home", []),
    ],
)
def test_options_that_hurt_are_named_and_others_are_not(path: str, options: list[str]) -> None:
    rows = found(path).harmful
    assert [row.option for row in rows] == options
    assert all(row.effect and row.advice for row in rows)


def test_attributes_that_are_never_kept_are_named_as_the_kernel_lists_them() -> None:
    line = "1 0 0:9 / /n rw,relatime - nfs4 a:/b rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0"
    (mount,) = mounts.parse(line)
    assert [row.option for row in harmful(mount)] == ["acregmax=0"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/data", "host 10.0.0.7 and port 2049"),
        ("/old", "host 10.0.0.8 and (port 2049 or port 111)"),
        ("/smb", "host nas.example and port 445"),
        ("/ceph", "port 3300 or port 6789 or portrange 6800-7568"),
        ("/home", ""),
    ],
)
def test_a_capture_filter_fits_the_protocol(path: str, text: str) -> None:
    assert found(path).capture_filter == text


@pytest.mark.parametrize(
    ("address", "protocol", "family"),
    [
        ("s3://bucket/key", "s3", "object store"),
        ("zip://a.csv::gs://bucket/a.zip", "gs", "object store"),
        ("hf://datasets/x", "hf", "object store"),
        ("https://example.org/x", "https", "network address"),
        ("file:///tmp/x", "file", "local"),
        ("memory://x", "memory", "memory"),
    ],
)
def test_addresses_of_fsspec_are_told_by_their_last_link(
    address: str, protocol: str, family: str
) -> None:
    result = filesystems.of_path(address, TABLE, "")
    assert (result.kind, result.family) == (protocol, family)
    assert result.promises


@pytest.mark.parametrize("path", ["/a:b/c", "C://x", "relative/path", "://x", "/x::y"])
def test_paths_are_no_addresses(path: str) -> None:
    assert kinds.of_address(path) is None


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "garbage", "1 2 3 - ext4", "22 1 254:1 / / rw - ", "\0\0", "1 2 3 4 5 6 - x"],
)
def test_malformed_mount_tables_give_unknown(text: str) -> None:
    result = filesystems.of_path("/data", text, text)
    assert (result.name, result.promises) == ("unknown", ())


def test_the_files_of_a_profile_are_grouped_by_mount() -> None:
    paths = ["/data/1", "/data/2", "/data/1", "/home/x", "relative"]
    rows = filesystems.grouped(paths, TABLE)
    assert [(row.name, count) for row, count in rows] == [("NFS 4.2", 2), ("ext4", 1)]
    assert filesystems.of_profile(builders.profile(), TABLE) == ()
