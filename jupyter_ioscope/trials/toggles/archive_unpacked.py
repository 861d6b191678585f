"""Compressed tar archives unpacked once, where samples are read from them in any order."""

from __future__ import annotations

import functools
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._folders import free_bytes, new_folder
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._tar_copy import Copy, TarUnpacked, unpacked

_PACKED = ("GzipFile", "BZ2File", "LZMAFile", "ZstdFile")
_UNPACK_S = 40.0  # a child that is silent for a minute is taken for hanging
_MOST_ARCHIVES = 16


def refuse(spec: LoaderSpec) -> str:
    if loaded("tarfile") is None:
        return "no tar archive is read: tarfile is not imported by this program"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Which archives samples come from; unpacks those that are compressed. Runs in a child."""
    import tarfile

    kind: Any = tarfile.TarFile
    original = kind.extractfile
    packed: dict[str, int] = {}
    plain: list[str] = []

    @functools.wraps(original)
    def extractfile(archive: Any, member: Any) -> Any:
        if type(archive.fileobj).__name__ in _PACKED:
            packed[archive.name] = packed.get(archive.name, 0) + 1
        else:
            plain.append(archive.name)
        return original(archive, member)

    kind.extractfile = extractfile
    samples = look(spec, batches=2).samples
    facts: dict[str, Any] = {"samples": samples, "plain": len(plain), "copies": [], "problem": ""}
    folder = new_folder(spec, "tar")
    for path in list(packed)[:_MOST_ARCHIVES]:
        most = free_bytes(folder) // 2
        try:
            made = unpacked(path, folder, most, _UNPACK_S / min(len(packed), _MOST_ARCHIVES))
        except Exception as error:
            made = f"the archive cannot be unpacked: {error}"
        if isinstance(made, str):
            facts["problem"] = made
        else:
            facts["copies"].append(list(made))
    return facts


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    if not facts["copies"]:
        reason = facts["problem"] or (
            "the archives are not compressed"
            if facts["plain"]
            else f"the first {facts['samples']} samples read no member of a tar archive"
        )
        raise_if(reason, "archive_unpacked")
    change = TarUnpacked(tuple(Copy(*row) for row in facts["copies"]))
    return spec.changed(in_child=(*spec.in_child, change))


def code(spec: LoaderSpec) -> str:
    return (
        "# once, in a shell: gunzip --keep data.tar.gz\n"
        '# or: with gzip.open("data.tar.gz") as packed, open("data.tar", "wb") as plain:\n'
        "#         shutil.copyfileobj(packed, plain)\n"
        "\n"
        "# in the dataset: a plain tar can be read at any place\n"
        'self.archive = tarfile.open("data.tar")'
    )


TOGGLE = Toggle(
    name="archive_unpacked",
    title="Unpack the tar archive once",
    effect="A compressed tar can only be read from its beginning: going back to a member unpacks "
    "everything before it again. Here the archive is unpacked once into a plain tar, in which each "
    "member is read where it lies.",
    cost="The plain tar takes the unpacked size on disk; unpacking happens once, before the timed "
    "runs.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=54,
    saves=("unpack", "unpack_seek"),
)
