"""The files of a whole batch asked for before its first sample is made."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from jupyter_ioscope.trials.code import code_of, dataset_name
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._ahead import (
    FilesOfAttribute,
    FilesOfMap,
    ReadAhead,
    attribute_with,
)
from jupyter_ioscope.trials.toggles._folders import new_folder
from jupyter_ioscope.trials.toggles._learn import raise_refusal
from jupyter_ioscope.trials.toggles._look import indices
from jupyter_ioscope.trials.toggles._opened_files import OpenedFiles
from jupyter_ioscope.units import seconds

_SAMPLES = 32
_WHOLE = 4  # looks in which every sample is seen, where no list of paths is found
_MOST_A_SAMPLE = 64
_LEAST_OPENS = 0.5  # different files a sample


def refuse(spec: LoaderSpec) -> str:
    if spec.iterable:
        return "an iterable dataset decides itself what it reads next"
    if not hasattr(os, "posix_fadvise"):
        return "this system takes no advice about files (posix_fadvise)"
    if spec.batch_size == 1 or (spec.batch_size is None and spec.batch_sampler is None):
        return "a batch is one sample: there is nothing to ask for ahead"
    if isinstance(spec.dataset, ReadAhead):
        return "files are asked for ahead already"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Which files each sample opens, and whether they can be known beforehand. Runs in a child."""
    opened = OpenedFiles()
    seen: dict[Any, list[str]] = {}
    for index in indices(spec, _SAMPLES):
        seen[index] = _opened(opened, spec, index)
    number = len({path for paths in seen.values() for path in paths})
    if number < _LEAST_OPENS * len(seen):
        return {
            "refusal": f"the first {len(seen)} samples opened {number} different files through "
            "Python: there is no file for each sample"
        }
    found = attribute_with(spec.dataset, seen)
    if found is not None:
        return {"attribute": found[0], "place": found[1]}
    longest_s, total = _WHOLE * spec.look_s, len(spec.dataset)
    until = time.monotonic() + longest_s
    for index in indices(spec, total):
        if index not in seen:
            seen[index] = _opened(opened, spec, index)
        if time.monotonic() > until:
            return {
                "refusal": "the dataset has no list of paths, and finding out which file each of "
                f"its {total:,} samples opens takes longer than {seconds(longest_s)}"
            }
    path = os.path.join(new_folder(spec, "ahead"), "files.json")
    with open(path, "w") as file:
        json.dump({repr(index): paths for index, paths in seen.items()}, file)
    return {"map": path}


def _opened(opened: OpenedFiles, spec: LoaderSpec, index: Any) -> list[str]:
    opened.paths = []
    spec.dataset[index]
    return list(dict.fromkeys(opened.paths))[:_MOST_A_SAMPLE]


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Which files a sample opens is only known after a look at some.
    return _written(spec, "self.paths[index]")


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    files: Any
    if "map" in facts:
        files, expression = FilesOfMap(facts["map"]), "path_of(index)"
    else:
        files = FilesOfAttribute(spec.dataset, facts["attribute"], facts["place"])
        place = "" if facts["place"] is None else f"[{facts['place']!r}]"
        expression = f"self.dataset.{facts['attribute']}[index]{place}"
    return _written(spec, expression).changed(dataset=ReadAhead(spec.dataset, files))


def _written(spec: LoaderSpec, expression: str) -> LoaderSpec:
    old = dict(spec.written).get("dataset", dataset_name(spec))
    lines = (
        "import os",
        "",
        "import torch",
        "",
        "",
        "class ReadAhead(torch.utils.data.Dataset):",
        "    def __init__(self, dataset):",
        "        self.dataset = dataset",
        "",
        "    def __len__(self):",
        "        return len(self.dataset)",
        "",
        "    def __getitems__(self, indices):",
        "        for index in indices:",
        f"            fd = os.open({expression}, os.O_RDONLY)  # the file that it reads",
        "            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)",
        "            os.close(fd)",
        "        return [self.dataset[index] for index in indices]",
        "",
        "",
    )
    kept = (row for row in spec.written if row[0] != "dataset")
    return spec.changed(
        before=(*spec.before, *lines), written=(*kept, ("dataset", f"ReadAhead({old})"))
    )


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="read_ahead",
    title="Ask for a batch's files ahead",
    effect="Before the first sample of a batch is made, the system is told which files all of them "
    "will read (posix_fadvise), so that waiting for one overlaps with waiting for the others.",
    cost="Each file is opened once more, a few microseconds: of use only while files are not in "
    "the page cache, so compare with cache='cold'.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=80,
)
