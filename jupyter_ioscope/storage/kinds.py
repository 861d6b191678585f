"""What is known about kinds of file systems: their names, families and promises."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.storage import Promise

YES, NO, DEPENDS = "yes", "no", "depends"

# kernel's name -> (name in words, family)
_KINDS: dict[str, tuple[str, str]] = {
    "ext2": ("ext2", "local"),
    "ext3": ("ext3", "local"),
    "ext4": ("ext4", "local"),
    "xfs": ("XFS", "local"),
    "btrfs": ("Btrfs", "local"),
    "zfs": ("ZFS", "local"),
    "bcachefs": ("bcachefs", "local"),
    "f2fs": ("F2FS", "local"),
    "jfs": ("JFS", "local"),
    "ntfs3": ("NTFS", "local"),
    "vfat": ("FAT", "local"),
    "exfat": ("exFAT", "local"),
    "squashfs": ("SquashFS, read-only and compressed", "local"),
    "erofs": ("EROFS, read-only", "local"),
    "iso9660": ("ISO 9660, read-only", "local"),
    "overlay": ("overlay (a container's layers)", "overlay"),
    "aufs": ("aufs (a container's layers)", "overlay"),
    "tmpfs": ("tmpfs (memory)", "memory"),
    "ramfs": ("ramfs (memory)", "memory"),
    "hugetlbfs": ("hugetlbfs (memory)", "memory"),
    "nfs": ("NFS", "network"),
    "nfs4": ("NFS", "network"),
    "cifs": ("SMB", "network"),
    "smb3": ("SMB", "network"),
    "smbfs": ("SMB", "network"),
    "ceph": ("CephFS", "network"),
    "lustre": ("Lustre", "network"),
    "gpfs": ("IBM Storage Scale (GPFS)", "network"),
    "beegfs": ("BeeGFS", "network"),
    "glusterfs": ("GlusterFS", "network"),
    "afs": ("AFS", "network"),
    "ocfs2": ("OCFS2", "network"),
    "gfs2": ("GFS2", "network"),
    "9p": ("9p (a folder of the host)", "host"),
    "virtiofs": ("virtiofs (a folder of the host)", "host"),
    "vboxsf": ("VirtualBox shared folder", "host"),
    "fuse.grpcfuse": ("Docker Desktop shared folder", "host"),
    "fakeowner": ("Docker Desktop shared folder", "host"),
}

# A FUSE file system says after the dot who serves it; here those in front of object stores.
_OBJECT_MOUNTS = {
    "s3fs": "s3fs (S3)",
    "goofys": "goofys (S3)",
    "mountpoint-s3": "Mountpoint for Amazon S3",
    "mount-s3": "Mountpoint for Amazon S3",
    "geesefs": "GeeseFS (S3)",
    "rclone": "rclone mount",
    "gcsfuse": "gcsfuse (Google Cloud Storage)",
    "blobfuse": "BlobFuse (Azure)",
    "blobfuse2": "BlobFuse2 (Azure)",
    "ossfs": "ossfs (OSS)",
    "cosfs": "cosfs (COS)",
    "hf-mount": "Hugging Face mount",
}
_FUSE_NAMES = {
    "sshfs": "SSHFS",
    "glusterfs": "GlusterFS over FUSE",
    "ceph-fuse": "CephFS over FUSE",
    "juicefs": "JuiceFS",
    "JuiceFS": "JuiceFS",
    "alluxio-fuse": "Alluxio",
    "ntfs-3g": "NTFS over FUSE",
    "fuse-overlayfs": "fuse-overlayfs (a container's layers)",
    "bindfs": "bindfs",
    "encfs": "EncFS",
    "gocryptfs": "gocryptfs",
    "mergerfs": "mergerfs",
    "lxcfs": "LXCFS",
    "squashfuse": "squashfuse",
    "dwarfs": "DwarFS",
    "cvmfs2": "CernVM-FS",
}

# Protocols of fsspec (filesystem_spec, `fsspec.available_protocols()`).
_OBJECT_PROTOCOLS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "hf", "oci")
_NETWORK_PROTOCOLS = (
    "http", "https", "ftp", "sftp", "ssh", "smb", "hdfs", "webhdfs", "arrow_hdfs", "gdrive",
    "dbfs", "github", "git", "dropbox", "webdav",
)  # fmt: skip
_LOCAL_PROTOCOLS = ("file", "local")
_MEMORY_PROTOCOLS = ("memory",)


class Kind(NamedTuple):
    """A kind of file system in words. `promises` are those of its family unless it has others."""

    name: str
    family: str
    promises: tuple[Promise, ...]


def of_mount(kind: str, source: str = "", version: str = "") -> Kind:
    """The kind of a mount by the kernel's name of it (`fuse.NAME` names who serves it)."""
    if kind.startswith("fuse") and kind not in _KINDS:
        return _fuse(kind.partition(".")[2], source)
    name, family = _KINDS.get(kind, (kind or "unknown", "unknown"))
    if kind in ("nfs", "nfs4"):
        number = version or ("4" if kind == "nfs4" else "3")
        return Kind(f"NFS {number}", family, _nfs(number))
    return Kind(name, family, _PROMISES.get(kind) or _PROMISES.get(family, ()))


def of_address(address: str) -> tuple[str, Kind] | None:
    """(protocol, kind) of an fsspec address such as `s3://bucket/key` or `zip://a::s3://b`.

    The last link of a chain is where the bytes come from. None where it is none.
    """
    protocol, separator, _ = address.rpartition("::")[2].partition("://")
    word = protocol.replace("_", "").replace("+", "")
    if not separator or len(word) < 2 or not word.isalnum():  # one letter is a drive of Windows
        return None
    protocol = protocol.lower()
    if protocol in _LOCAL_PROTOCOLS:
        return protocol, Kind("a local path", "local", _PROMISES["local"])
    if protocol in _MEMORY_PROTOCOLS:
        return protocol, Kind("fsspec's memory", "memory", _PROMISES["memory"])
    if protocol in _NETWORK_PROTOCOLS:
        return protocol, Kind(f"{protocol} address", "network address", _PROMISES["object store"])
    known = protocol in _OBJECT_PROTOCOLS
    name = f"{protocol} object store" if known else f"{protocol} address"
    return protocol, Kind(name, "object store", _PROMISES["object store"])


def local_path(text: str) -> str:
    """A path, also of `file:///data`.

    Raises:
        InputError: it is the address of something else.
    """
    address = of_address(text)
    if address is None:
        return text
    if address[0] not in _LOCAL_PROTOCOLS:
        raise InputError(
            f"{text!r} is an address ({address[1].name}): give the path of a mount of it, or of a "
            "copy on this machine"
        )
    return text.partition("://")[2]


def _fuse(server: str, source: str) -> Kind:
    # Some say their name only as the source of the mount.
    for name in (server, source.partition("#")[0]):
        if name in _OBJECT_MOUNTS:
            return Kind(f"{_OBJECT_MOUNTS[name]}, FUSE", "object store", _PROMISES["object mount"])
        if name in _FUSE_NAMES:
            return Kind(f"{_FUSE_NAMES[name]}, FUSE", "fuse", _PROMISES["fuse"])
    who = server or source
    return Kind(f"FUSE ({who})" if who else "FUSE", "fuse", _PROMISES["fuse"])


def _nfs(version: str) -> tuple[Promise, ...]:
    new = version.startswith("4")
    locks = "part of the protocol" if new else "by a separate service (lockd), off with `nolock`"
    return (
        Promise("atomic rename", YES, "on the server; a repeated request may report a failure"),
        Promise("atomic append", NO, "two clients that append can write to one place (open(2))"),
        Promise("locks", YES if new else DEPENDS, locks),
        Promise("shared mmap is coherent", NO, "between clients only after a reopen"),
        Promise("close-to-open", YES, "an open sees what others had closed before (nfs(5))"),
    )


_LOCAL = (
    Promise("atomic rename", YES, "POSIX"),
    Promise("atomic append", YES, "O_APPEND positions and writes in one step"),
    Promise("locks", YES, "flock and fcntl, between processes of this machine"),
    Promise("shared mmap is coherent", YES, "one page cache for reads, writes and maps"),
    Promise("close-to-open", YES, "every read sees all earlier writes"),
)
_OBJECTS = (
    Promise("atomic rename", NO, "a copy and a deletion"),
    Promise("atomic append", NO, "objects are written whole"),
    Promise("locks", NO, "there are none"),
    Promise("shared mmap is coherent", NO, "objects cannot be mapped; libraries download a copy"),
    Promise("close-to-open", DEPENDS, "finished objects show at once; caches may not"),
)  # fmt: skip
_PROMISES: dict[str, tuple[Promise, ...]] = {
    "local": _LOCAL,
    "memory": _LOCAL,
    "overlay": (
        _LOCAL[0]._replace(holds=DEPENDS, why="folders of a lower layer answer EXDEV"),
        _LOCAL[1],
        _LOCAL[2]._replace(why="but a lock taken before a file is copied up is on the old file"),
        _LOCAL[3]._replace(holds=DEPENDS, why="a map made before the copy-up shows the lower file"),
        _LOCAL[4]._replace(holds=DEPENDS, why="the first write copies the whole file up"),
    ),
    "fuse": (
        Promise("atomic rename", DEPENDS, "on the program that serves the mount"),
        Promise("atomic append", DEPENDS, "on the program that serves the mount"),
        Promise("locks", DEPENDS, "local to this machine unless the program implements them"),
        Promise("shared mmap is coherent", DEPENDS, "not where the program asks for direct I/O"),
        Promise("close-to-open", DEPENDS, "attributes may be cached for a time (entry_timeout)"),
    ),
    "network": (
        Promise("atomic rename", YES, "on the server"),
        Promise("atomic append", DEPENDS, "on the server's locks"),
        Promise("locks", DEPENDS, "on mount options and the server"),
        Promise("shared mmap is coherent", DEPENDS, "within one client"),
        Promise("close-to-open", DEPENDS, "on the cache mode"),
    ),
    "cifs": (
        Promise("atomic rename", YES, "but not over a file that somebody has open"),
        Promise("atomic append", DEPENDS, "on oplocks and cache mode"),
        Promise("locks", YES, "mandatory: a locked range cannot be read by others, unless nobrl"),
        Promise("shared mmap is coherent", NO, "between clients"),
        Promise("close-to-open", DEPENDS, "cache=strict yes, cache=loose no (mount.cifs(8))"),
    ),
    "ceph": (
        Promise("atomic rename", YES, "by the metadata server"),
        Promise("atomic append", YES, "clients get exclusive capabilities"),
        Promise("locks", YES, "flock and fcntl, between clients"),
        Promise("shared mmap is coherent", DEPENDS, "not between two clients (CephFS docs)"),
        Promise("close-to-open", YES, "stronger: caches are revoked on sharing, unless LazyIO"),
    ),
    "host": (
        Promise("atomic rename", YES, "by the host"),
        Promise("atomic append", DEPENDS, "on the cache mode"),
        Promise("locks", DEPENDS, "not seen by the host unless passed through"),
        Promise("shared mmap is coherent", DEPENDS, "9p: with cache=mmap or looser only"),
        Promise("close-to-open", DEPENDS, "on the cache mode; cache=loose and DAX differ"),
    ),
    "object mount": (
        Promise("atomic rename", NO, "a copy and a deletion, of every object below for folders"),
        Promise("atomic append", NO, "the whole object is written again, or the append refused"),
        Promise("locks", NO, "at most within this machine"),
        Promise("shared mmap is coherent", NO, "maps show this client's cached copy"),
        Promise("close-to-open", DEPENDS, "on how long the mount caches names and sizes"),
    ),
    "object store": _OBJECTS,
    "lustre": (
        *_LOCAL[:2],
        Promise("locks", DEPENDS, "mount option flock; without it flock() fails or is local"),
        _LOCAL[3]._replace(why="by the distributed lock manager"),
        _LOCAL[4]._replace(why="by the distributed lock manager"),
    ),
}  # fmt: skip
