"""Members of NPZ archives mapped into memory instead of read whole for every sample."""

from __future__ import annotations

import functools
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._folders import free_bytes, new_folder
from jupyter_ioscope.trials.toggles._look import dataset_length, look
from jupyter_ioscope.trials.toggles._npz_map import NpzMapped
from jupyter_ioscope.units import bytes_text, percent

_MOST_OF_DISK = 0.5  # of the free bytes that unpacked members may take
_USED_WHOLE = 0.5  # delivered of read bytes, from which on mapping saves next to nothing


def refuse(spec: LoaderSpec) -> str:
    if loaded("numpy") is None:
        return "no NPZ archive is read: numpy is not imported by this program"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Which members are read and how much of them arrives. Runs in a child."""
    import numpy

    kind: Any = numpy.lib.npyio.NpzFile
    original = kind.__getitem__
    reads: list[tuple[str, int, bool]] = []

    @functools.wraps(original)
    def getitem(archive: Any, key: str) -> Any:
        array = original(archive, key)
        path = getattr(archive.zip, "filename", None)
        if hasattr(array, "nbytes") and isinstance(path, str):
            names = archive.zip.namelist()
            name = key if key in names else f"{key}.npy"
            packed = archive.zip.getinfo(name).compress_type != 0
            reads.append((f"{path}\0{name}", array.nbytes, packed))
        return array

    kind.__getitem__ = getitem
    seen = look(spec)
    members = {name: (size, packed) for name, size, packed in reads}
    folder = new_folder(spec, "npz")
    return {
        "samples": seen.samples,
        "delivered_bytes": seen.delivered_bytes,
        "reads": len(reads),
        "read_bytes": sum(size for _, size, _ in reads),
        "packed": sum(packed for _, packed in members.values()),
        "member_bytes": sum(size for size, _ in members.values()),
        "members": len(members),
        "length": dataset_length(spec),
        "folder": folder,
        "free_bytes": free_bytes(folder),
    }


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_if(_reason(facts), "npz_unpacked")
    return spec.changed(in_child=(*spec.in_child, NpzMapped(facts["folder"])))


def _reason(facts: dict[str, Any]) -> str:
    if not facts["reads"]:
        return f"the first {facts['samples']} samples read no array of an NPZ archive"
    used = facts["delivered_bytes"] / facts["read_bytes"] if facts["read_bytes"] else 1.0
    if used >= _USED_WHOLE and not facts["packed"]:
        return (
            f"the arrays are used whole ({percent(min(1.0, used))} of the bytes read arrive in "
            "the batches) and are not compressed: there is nothing to save"
        )
    # Where each sample has members of its own, all of them would be unpacked in an epoch.
    share = facts["members"] / max(1, facts["samples"])
    all_bytes = facts["member_bytes"]
    if share > 0.1:
        all_bytes = all_bytes / facts["samples"] * max(facts["length"], facts["samples"])
    if facts["packed"] and all_bytes > _MOST_OF_DISK * facts["free_bytes"]:
        return (
            f"unpacked, the members take about {bytes_text(int(all_bytes))}, more than half of the "
            f"{bytes_text(facts['free_bytes'])} that are free for temporary files"
        )
    return ""


def code(spec: LoaderSpec) -> str:
    return (
        "# once: each array into a file of its own, which can be mapped\n"
        "with np.load(path) as archive:\n"
        "    for name in archive.files:\n"
        '        np.save(f"{folder}/{name}.npy", archive[name])\n'
        "\n"
        "# in the dataset:\n"
        'self.x = np.load(f"{folder}/x.npy", mmap_mode="r")  # np.load ignores mmap_mode for .npz\n'
        "...\n"
        "row = self.x[index].copy()"
    )


TOGGLE = Toggle(
    name="npz_unpacked",
    title="Map NPZ members into memory",
    effect="Indexing an open NPZ archive reads the whole member each time, even with mmap_mode. "
    "Here members are mapped where they lie in the archive, and compressed ones from a copy that "
    "is unpacked once; only the rows that are used are read.",
    cost="Compressed members take their full size on disk; unpacking them happens once, before "
    "the timed runs.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=54,
    saves=("npz_member", "unpack"),
)
