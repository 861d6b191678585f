"""What file system a path lies on, what it promises, and which of its mount options hurt."""

from __future__ import annotations

import os
from collections.abc import Iterable

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.storage import FileSystem, NfsMount
from jupyter_ioscope.storage import cephstats, kinds, mounts, mountstats
from jupyter_ioscope.storage.mount_options import harmful

_MOUNTINFO, _MOUNTSTATS = "/proc/self/mountinfo", "/proc/self/mountstats"


def of_path(
    path: str, mountinfo: str | None = None, mountstats_text: str | None = None
) -> FileSystem:
    """The file system of an absolute path without symbolic links, or of an fsspec address.

    The path itself is not touched. The two texts are those of `/proc/self/mountinfo` and
    `/proc/self/mountstats`; left out, they are read.
    """
    address = kinds.of_address(path)
    if address is not None:
        protocol, kind = address
        return FileSystem(path, "", protocol, kind.name, kind.family, "", False, (), kind.promises)
    text = _read(_MOUNTINFO) if mountinfo is None else mountinfo
    mount = mounts.of_path(path, mounts.parse(text))
    if mount is None:
        return FileSystem(path, "", "", "unknown", "unknown", "", False, (), ())
    return _of_mount(path, mount, mountstats_text)


def _of_mount(path: str, mount: mounts.Mount, mountstats_text: str | None) -> FileSystem:
    kind = kinds.of_mount(mount.kind, mount.source, mount.option("vers") or "")
    ceph, no_counters = cephstats.of_source(mount.source) if mount.kind == "ceph" else ((), "")
    return FileSystem(
        path=path,
        mount_point=mount.point,
        kind=mount.kind,
        name=kind.name,
        family=kind.family,
        source=mount.source,
        read_only=mount.read_only,
        options=mount.options,
        promises=kind.promises,
        harmful=harmful(mount),
        capture_filter=capture_filter(mount),
        nfs=_nfs(mount, mountstats_text) if mount.kind.startswith("nfs") else None,
        ceph=ceph,
        no_counters=no_counters,
    )


def _nfs(mount: mounts.Mount, text: str | None) -> NfsMount | None:
    found = mountstats.parse(_read(_MOUNTSTATS) if text is None else text)
    return next((row for row in reversed(found) if row.mount_point == mount.point), None)


def nfs_counters() -> tuple[NfsMount, ...]:
    """The counters of all NFS mounts of this machine now; no server is asked."""
    return mountstats.parse(_read(_MOUNTSTATS))


def nfs_since(before: tuple[NfsMount, ...], after: NfsMount | None) -> NfsMount | None:
    """What the client of one mount did since `before`; None where that is not known."""
    own = (row for row in reversed(before) if after and row.mount_point == after.mount_point)
    earlier = next(own, None)
    return mountstats.since(earlier, after) if earlier is not None and after is not None else None


def capture_filter(mount: mounts.Mount) -> str:
    """A filter for tcpdump that keeps this mount's packets; "" where it speaks to nobody.

    Ports: NFS 2049 and portmap 111 (nfs(5)), SMB 445, Ceph 3300, 6789 and 6800-7568 (Ceph docs).
    """
    host = mount.option("addr") or _host(mount)
    at = f"host {host} and " if host else ""
    if mount.kind in ("nfs", "nfs4"):
        port = mount.option("port")
        number = port if port and port != "0" else "2049"
        older = "" if mount.kind == "nfs4" else " or port 111"
        return f"{at}(port {number}{older})" if older else f"{at}port {number}"
    if mount.kind in ("cifs", "smb3"):
        return f"{at}port 445"
    if mount.kind == "ceph":
        return "port 3300 or port 6789 or portrange 6800-7568"
    return ""


def _host(mount: mounts.Mount) -> str:
    source = mount.source
    if source.startswith("//"):
        return source[2:].partition("/")[0]
    if source.startswith("["):
        return source[1:].partition("]")[0]
    return source.partition(":/")[0] if ":/" in source else ""


def of_profile(
    profile: Profile, mountinfo: str | None = None
) -> tuple[tuple[FileSystem, int], ...]:
    """(file system, files) for the files that a profile's loaders opened, most files first."""
    return grouped((use.path for use in profile.files if use.phase == "fetch"), mountinfo)


def grouped(
    paths: Iterable[str], mountinfo: str | None = None
) -> tuple[tuple[FileSystem, int], ...]:
    """(file system, number of paths) by mount, most paths first; relative paths are left out."""
    text = _read(_MOUNTINFO) if mountinfo is None else mountinfo
    table = mounts.parse(text)
    counts: dict[mounts.Mount, int] = {}
    for path in dict.fromkeys(paths):
        mount = mounts.of_path(path, table) if os.path.isabs(path) else None
        if mount is not None:
            counts[mount] = counts.get(mount, 0) + 1
    rows = sorted(counts.items(), key=lambda item: -item[1])
    return tuple((_of_mount(mount.point, mount, None), count) for mount, count in rows)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return file.read()
    except OSError:
        return ""
