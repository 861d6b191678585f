"""Samples made once and then copied out of memory that all workers share."""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

from jupyter_ioscope.trials.code import code_of, dataset_name
from jupyter_ioscope.trials.counting import seed_all
from jupyter_ioscope.trials.room import free_memory_bytes
from jupyter_ioscope.trials.sample_cache import CachedDataset
from jupyter_ioscope.trials.sample_cache._codec import decoded, encoded
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short
from jupyter_ioscope.trials.toggles._look import indices
from jupyter_ioscope.units import bytes_text, significant

_SAMPLES = 24
_SEEDS = (1, 2)
_PART = 0.5  # of the free memory that the cache may take: the step and the workers need some, too
_ROOM = 1.1  # samples not looked at may be larger, and the index needs some
_ENTRY_BYTES = 320
_HIT_US = 40.0  # a hit of a small sample takes about half of that


def refuse(spec: LoaderSpec) -> str:
    if spec.iterable:
        return "iterable datasets have no index under which a sample could be kept"
    if isinstance(spec.dataset, CachedDataset):
        return "the dataset is cached already"
    if sys.platform == "win32":
        return "sharing memory without a name needs Linux or macOS"
    if not hasattr(spec.dataset, "__getitem__") or not hasattr(spec.dataset, "__len__"):
        return "the dataset has no length or cannot be indexed"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Whether items come out the same each time, how large they are and how long they take.
    Runs in a child."""
    until = time.monotonic() + spec.look_s
    sizes, times_us = [], []
    for index in indices(spec, _SAMPLES):
        digests = []
        for seed in _SEEDS:
            seed_all(seed)
            started = time.perf_counter_ns()
            item = spec.dataset[index]
            times_us.append((time.perf_counter_ns() - started) / 1e3)
            digests.append(sample_of(item).digest)
        if digests[0] != digests[1]:
            return {"refusal": _RANDOM}
        try:
            data = bytearray().join(encoded(item))
            digests.append(sample_of(decoded(data)).digest)
        except Exception as error:
            return {"refusal": f"its samples cannot be kept as bytes: {short(error)}"}
        if digests[2] != digests[0]:
            return {"refusal": "its samples do not come out of bytes as they went in"}
        sizes.append(len(data))
        if time.monotonic() > until:
            break
    return _judged(spec, sizes, times_us) if sizes else {"refusal": "the loader draws no sample"}


_RANDOM = (
    "its samples are drawn at random (the same index gave two different ones), and a cache would "
    "freeze them; cache what comes before the random part"
)


def _judged(spec: LoaderSpec, sizes: list[int], times_us: list[float]) -> dict[str, Any]:
    usual_us = median(times_us)
    if usual_us < _HIT_US:
        return {
            "refusal": f"a sample is made in {significant(usual_us, 2)} µs, which is no longer "
            "than taking it out of a cache"
        }
    mean = sum(sizes) / len(sizes) + _ENTRY_BYTES
    wanted = int(mean * len(spec.dataset) * _ROOM) + (1 << 20)
    free = free_memory_bytes()
    if wanted > _PART * free:
        return {
            "refusal": f"all samples together take about {bytes_text(wanted)}, more than half of "
            f"the {bytes_text(free)} of memory that are free: most would be gone before they are "
            "wanted again"
        }
    return {"limit_bytes": wanted, "sample_us": usual_us}


def apply(spec: LoaderSpec) -> LoaderSpec:
    # How large the samples are is only known after a look at some.
    return _applied(spec, 1 << 30, lambda dataset, limit_bytes: dataset)


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    return _applied(spec, facts["limit_bytes"], CachedDataset)


def _applied(spec: LoaderSpec, limit_bytes: int, wrap: Any) -> LoaderSpec:
    old = dict(spec.written).get("dataset", dataset_name(spec))
    kept = (row for row in spec.written if row[0] != "dataset")
    new = ("dataset", f"ioscope.CachedDataset({old}, limit_bytes={limit_bytes:_})")
    return spec.changed(
        dataset=wrap(spec.dataset, limit_bytes=limit_bytes),
        before=(*spec.before, "import ioscope", ""),
        written=(*kept, new),
    )


def code(spec: LoaderSpec) -> str:
    if isinstance(spec.dataset, CachedDataset):
        return ""
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="sample_cache",
    title="Cache decoded samples",
    effect="Each sample is made once; from then on all workers copy it out of memory that they "
    "share. What is timed is a later epoch, when everything is in the cache.",
    cost="Memory for all samples, as large as they are after decoding. The first epoch fills the "
    "cache and is a little slower. Random augmentation would be frozen: only for datasets whose "
    "samples come out the same each time.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=90,
    saves=(
        "text_parse", "regex", "tokenise", "image_decode", "image_open", "image_resize",
        "image_other", "audio_decode", "unpack", "unpack_seek", "npz_member", "array_load",
        "container_open", "container_lookup", "container_read", "container_query", "table_rows",
        "dataset_rows", "file_open", "file_stat", "file_read", "remote", "memory_map", "unpickle",
        "tensor_build", "to_python", "convert", "user",
    ),
)  # fmt: skip
