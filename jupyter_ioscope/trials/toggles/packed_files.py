"""Many small files packed into one."""

from __future__ import annotations

import os
from typing import Any

from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._folders import free_bytes, new_folder
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._opened_files import OpenedFiles
from jupyter_ioscope.trials.toggles._pack import Limits, PackedFiles, make_pack
from jupyter_ioscope.units import bytes_text

_LEAST_OPENS = 0.5  # different files a sample
_LARGE_BYTES = 512 * 1024  # on average; opening such a file is little beside reading it
_MOST_FILES = 200_000
_MOST_BYTES = 4 << 30
_PACK_S = 40.0  # a child that is silent for a minute is taken for hanging


def refuse(spec: LoaderSpec) -> str:
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Which small files the samples come from; packs their folders. Runs in a child."""
    opened = OpenedFiles()
    samples = look(spec).samples
    opened.on = False
    files = [path for path in dict.fromkeys(opened.paths) if os.path.isfile(path)]
    sizes = [os.path.getsize(path) for path in files]
    facts: dict[str, Any] = {
        "samples": samples,
        "files": len(files),
        "mean_bytes": sum(sizes) / len(sizes) if sizes else 0.0,
        "packed": 0,
        "problem": "",
        "pack": "",
    }
    if not _reason(facts):
        folder = new_folder(spec, "pack")
        limits = Limits(_MOST_FILES, min(_MOST_BYTES, free_bytes(folder) // 2), _PACK_S)
        target = os.path.join(folder, "pack")
        suffixes = {os.path.splitext(path)[1] for path in files}
        roots = _roots(files)
        facts["packed"], facts["problem"] = make_pack(roots, suffixes, target, limits)
        facts["pack"] = target
    return facts


def _roots(files: list[str]) -> list[str]:
    """The folders that hold them; of many folders side by side, the one above."""
    folders = sorted({os.path.dirname(path) for path in files})
    above = {os.path.dirname(folder) for folder in folders}
    if len(folders) > 1 and len(above) == 1 and above != {os.sep}:
        return sorted(above)
    return folders


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_if(_reason(facts) or facts["problem"], "packed_files")
    return spec.changed(in_child=(*spec.in_child, PackedFiles(facts["pack"])))


def _reason(facts: dict[str, Any]) -> str:
    if facts["files"] < _LEAST_OPENS * facts["samples"]:
        return (
            f"the first {facts['samples']} samples opened {facts['files']} different files through "
            "Python: there is no file for each sample"
        )
    if facts["mean_bytes"] > _LARGE_BYTES:
        return (
            f"the files are large ({bytes_text(int(facts['mean_bytes']))} on average): opening "
            "them is little beside reading them"
        )
    return ""


def code(spec: LoaderSpec) -> str:
    return (
        "# once: all files into one, with where each lies\n"
        "def pack(paths, target):\n"
        "    offsets = [0]\n"
        '    with open(target, "wb") as out:\n'
        "        for path in paths:\n"
        '            with open(path, "rb") as file:\n'
        "                offsets.append(offsets[-1] + out.write(file.read()))\n"
        '    np.save(f"{target}.offsets.npy", np.array(offsets))\n'
        "\n"
        "\n"
        "# in the dataset, once in each process: self.at = np.load(...).tolist() and\n"
        "# self.pack = mmap.mmap(os.open(target, os.O_RDONLY), 0, prot=mmap.PROT_READ)\n"
        "def data(self, index):\n"
        "    return self.pack[self.at[index] : self.at[index + 1]]"
    )


TOGGLE = Toggle(
    name="packed_files",
    title="Pack small files into one",
    effect="All files of the folders that samples come from are copied once into one file; a "
    "sample is then one read at a known place, without looking up, opening and closing a file.",
    cost="Disk space for the copy, which must be made again when files change; packing happens "
    "once, before the timed runs. Only files opened through Python's open are read from it.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=53,
    saves=("file_open", "file_stat"),
)
