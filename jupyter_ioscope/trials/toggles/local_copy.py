"""Files of a network file system copied to the local disk once."""

from __future__ import annotations

import os
from typing import Any

from jupyter_ioscope.storage import filesystems
from jupyter_ioscope.trials.page_cache import mapped_files
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._copies import LocalCopies
from jupyter_ioscope.trials.toggles._folders import free_bytes, new_folder
from jupyter_ioscope.trials.toggles._look import dataset_length, look
from jupyter_ioscope.trials.toggles._opened_files import OpenedFiles
from jupyter_ioscope.units import bytes_text

_LOCAL = frozenset(("local", "overlay", "memory", "unknown"))
_PART = 0.5  # of the free bytes on the local disk
_LIMIT_BYTES = 50 << 30


def refuse(spec: LoaderSpec) -> str:
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Which files samples come from, where they lie and how much that is. Runs in a child."""
    opened = OpenedFiles()
    samples = look(spec).samples
    opened.on = False
    by_c = mapped_files(())  # libraries written in C open files without Python noticing
    files = [path for path in dict.fromkeys([*opened.paths, *by_c]) if os.path.isfile(path)]
    slow: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for path in files:
        real = os.path.realpath(path)
        system = filesystems.of_path(real)
        if system.family not in _LOCAL:
            slow.setdefault(system.mount_point, []).append(path)
            names[system.mount_point] = system.name
    folder = new_folder(spec, "copies")
    sizes = [os.path.getsize(path) for paths in slow.values() for path in paths]
    return {
        "samples": samples,
        "files": len(files),
        "slow": sum(map(len, slow.values())),
        "mean_bytes": sum(sizes) / len(sizes) if sizes else 0,
        "roots": sorted({_root(path, mount) for mount, paths in slow.items() for path in paths}),
        "names": sorted(set(names.values())),
        "length": dataset_length(spec),
        "local": filesystems.of_path(os.path.realpath(folder)).family in _LOCAL,
        "free_bytes": free_bytes(folder),
        "folder": folder,
    }


def _root(path: str, mount_point: str) -> str:
    """The mount point as the program writes it: the path may lead there by a link."""
    return mount_point if path.startswith(mount_point) else os.path.dirname(path)


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_if(_reason(facts), "local_copy")
    change = LocalCopies(tuple(facts["roots"]), facts["folder"])
    return spec.changed(in_child=(*spec.in_child, change))


def _reason(facts: dict[str, Any]) -> str:
    if not facts["files"]:
        return f"the first {facts['samples']} samples opened no file"
    if not facts["slow"]:
        return "the files are on a local disk already"
    if not facts["local"]:
        return "the folder for temporary files (TMPDIR) is not on a local disk either"
    each = facts["slow"] / max(1, facts["samples"])
    files = facts["slow"]
    if each > 0.1:  # a file for each sample, more or less
        files = max(files, each * facts["length"])
    wanted = int(files * facts["mean_bytes"])
    if wanted > min(_LIMIT_BYTES, _PART * facts["free_bytes"]):
        return (
            f"the files take about {bytes_text(wanted)}, and the local disk has "
            f"{bytes_text(facts['free_bytes'])} free"
        )
    return ""


def code(spec: LoaderSpec) -> str:
    return (
        "# once, before the dataset is made:\n"
        "local = shutil.copytree(folder, tempfile.mkdtemp(), dirs_exist_ok=True)\n"
        "\n"
        "# in the dataset: paths below `local`"
    )


TOGGLE = Toggle(
    name="local_copy",
    title="Copy to the local disk",
    effect="Files on a network or FUSE file system are copied to the local disk when they are "
    "first opened, and read from there afterwards. What is timed is a later epoch.",
    cost="Disk space for the copies, and the time to copy once; files that change are not noticed "
    "while a process runs.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=52,
    saves=("file_open", "file_stat", "file_read", "remote"),
)
