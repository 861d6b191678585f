"""Mount options that make loaders slow, by what the manuals say of them."""

from __future__ import annotations

from jupyter_ioscope.model.storage import HarmfulOption
from jupyter_ioscope.storage.mounts import Mount
from jupyter_ioscope.units import bytes_text

# Below this a READ of NFS needs several round trips for what a loader asks for at once; the
# kernel's default is what the server offers, at most 1 MiB (nfs(5)).
SMALL_RSIZE_BYTES = 128 * 1024
_NFS = ("nfs", "nfs4")
_SMB = ("cifs", "smb3")


def harmful(mount: Mount) -> tuple[HarmfulOption, ...]:
    """Options of a mount that hurt, with what they do and what to use instead."""
    found = [*_everywhere(mount)]
    if mount.kind in _NFS:
        found += _nfs(mount)
    if mount.kind in _SMB:
        found += _smb(mount)
    if mount.kind == "9p":
        found += _nine_p(mount)
    if mount.kind.startswith("fuse"):
        found += _fuse(mount)
    return tuple(found)


def _everywhere(mount: Mount) -> list[HarmfulOption]:
    found = []
    if "sync" in mount.options:
        found.append(
            HarmfulOption("sync", "every write waits for the device (mount(8))", "mount with async")
        )
    if "dirsync" in mount.options:
        found.append(
            HarmfulOption(
                "dirsync", "every created, renamed or removed file waits", "mount without dirsync"
            )
        )
    if _writes_access_times(mount):
        found.append(
            HarmfulOption(
                "strictatime",
                "every read also writes the time of access into the inode (mount(8))",
                "mount with relatime or noatime",
            )
        )
    if mount.kind in ("ext4", "xfs", "f2fs", "btrfs") and "discard" in mount.options:
        found.append(
            HarmfulOption(
                "discard",
                "freed blocks are discarded at once: deleting many files stalls some devices",
                "run fstrim once a week instead (fstrim(8)); harmless where files are only read",
            )
        )
    return found


def _writes_access_times(mount: Mount) -> bool:
    # strictatime is what holds where the kernel lists neither of the two others.
    disk = mount.kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs")
    return disk and not mount.read_only and not {"relatime", "noatime"} & set(mount.options)


def _nfs(mount: Mount) -> list[HarmfulOption]:
    found = []
    if "noac" in mount.options:
        found.append(
            HarmfulOption(
                "noac",
                "no attribute is cached: every stat and open asks the server, and writes are "
                "synchronous (nfs(5))",
                "mount the data set without noac; data that never changes: actimeo=3600,nocto,ro",
            )
        )
    elif _no_attributes(mount):
        found.append(
            HarmfulOption(
                "actimeo=0" if mount.option("actimeo") == "0" else "acregmax=0",
                "attributes are stale at once: every stat and open asks the server (nfs(5))",
                "leave the default (3 to 60 s), or actimeo=3600 for data that never changes",
            )
        )
    size = _number(mount.option("rsize"))
    if 0 < size < SMALL_RSIZE_BYTES:
        found.append(
            HarmfulOption(
                f"rsize={size}",
                f"a read is cut into requests of {bytes_text(size)}, each a round trip",
                "rsize=1048576, the largest the kernel knows",
            )
        )
    for name, effect, advice in _NFS_PLAIN:
        if name in mount.options:
            found.append(HarmfulOption(name, effect, advice))
    if mount.option("proto") == "udp":
        found.append(
            HarmfulOption("proto=udp", "a lost packet repeats the whole read", "proto=tcp")
        )
    return found


_NFS_PLAIN = (
    (
        "lookupcache=none",
        "every path component asks the server on every open (nfs(5))",
        "lookupcache=all, or positive",
    ),
    (
        "soft",
        "after a timeout a read fails with EIO instead of waiting: a training run dies",
        "mount with hard",
    ),
    ("nordirplus", "a folder's attributes come one file at a time", "mount with rdirplus"),
)


def _no_attributes(mount: Mount) -> bool:
    # The kernel lists actimeo as the four times it stands for.
    return any(mount.option(name) == "0" for name in ("actimeo", "acregmax"))


def _smb(mount: Mount) -> list[HarmfulOption]:
    found = []
    if mount.option("cache") == "none" or "directio" in mount.options:
        found.append(
            HarmfulOption(
                "cache=none", "every read goes to the server (mount.cifs(8))", "cache=strict"
            )
        )
    version = mount.option("vers") or ""
    if version.startswith("1"):
        found.append(
            HarmfulOption(
                f"vers={version}", "requests of at most 60 kB, one at a time", "vers=3.1.1"
            )
        )
    size = _number(mount.option("rsize"))
    if 0 < size < SMALL_RSIZE_BYTES:
        found.append(
            HarmfulOption(
                f"rsize={size}",
                f"a read is cut into requests of {bytes_text(size)}",
                "rsize=4194304 with SMB 3",
            )
        )
    if mount.option("actimeo") == "0":
        found.append(HarmfulOption("actimeo=0", "every stat asks the server", "actimeo=30 or more"))
    return found


def _nine_p(mount: Mount) -> list[HarmfulOption]:
    found = []
    size = _number(mount.option("msize"))
    if 0 < size < SMALL_RSIZE_BYTES:
        found.append(
            HarmfulOption(
                f"msize={size}",
                f"a read is cut into requests of {bytes_text(size)}, each a way to the host",
                "msize=1048576, or virtiofs",
            )
        )
    if mount.option("cache") in (None, "none"):
        found.append(
            HarmfulOption(
                "cache=none",
                "nothing is kept: every read goes to the host",
                "cache=loose for data that does not change, or virtiofs",
            )
        )
    return found


def _fuse(mount: Mount) -> list[HarmfulOption]:
    size = _number(mount.option("max_read"))
    if 0 < size < SMALL_RSIZE_BYTES:
        return [
            HarmfulOption(
                f"max_read={size}",
                f"the kernel asks for at most {bytes_text(size)} at once",
                "max_read=131072 or more (mount.fuse(8))",
            )
        ]
    return []


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
