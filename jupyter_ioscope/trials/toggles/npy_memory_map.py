"""np.load with a memory map, where samples use only a part of the array."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._handles import Handles, file_key
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._npz_map import array_at
from jupyter_ioscope.trials.toggles._rebind import rebind
from jupyter_ioscope.units import bytes_text, percent

_SMALLEST_BYTES = 256 * 1024  # below that reading is as quick as mapping
_USED_WHOLE = 0.5


@dataclass(frozen=True)
class NpyMapped:
    """`np.load(path)` of a .npy file maps it, each time anew and copy-on-write: what the program
    writes into the array stays its own, as with an array that was read."""

    smallest_bytes: int = _SMALLEST_BYTES

    def install(self) -> None:
        import numpy

        load: Any = numpy.load
        if hasattr(load, "_ioscope_mapped"):
            return
        known = Handles()

        @functools.wraps(load)
        def mapped(file: Any, mmap_mode: Any = None, *args: Any, **kwargs: Any) -> Any:
            key = file_key("npy", file) if mmap_mode is None else None
            # The size is the last but one: small files are read.
            if key is None or key[-2] < self.smallest_bytes:
                return load(file, mmap_mode, *args, **kwargs)
            found = known.get(key)
            if found is None:
                found = array_at(key[1], 0) or False
                known.put(key, found)
            return found.mapped() if found else load(file, mmap_mode, *args, **kwargs)

        mapped._ioscope_mapped = True  # type: ignore[attr-defined]
        rebind(numpy, "load", mapped)


def refuse(spec: LoaderSpec) -> str:
    if loaded("numpy") is None:
        return "no array is loaded: numpy is not imported by this program"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """What np.load reads and how much of it arrives. Runs in a child."""
    import numpy

    load: Any = numpy.load
    sizes: list[int] = []
    mapped: list[str] = []

    @functools.wraps(load)
    def noted(file: Any, mmap_mode: Any = None, *args: Any, **kwargs: Any) -> Any:
        array = load(file, mmap_mode, *args, **kwargs)
        if mmap_mode is not None:
            mapped.append(mmap_mode)
        elif isinstance(array, numpy.ndarray) and file_key("npy", file) is not None:
            sizes.append(int(array.nbytes))
        return array

    rebind(numpy, "load", noted)
    seen = look(spec)
    return {
        "samples": seen.samples,
        "delivered_bytes": seen.delivered_bytes,
        "loads": len(sizes),
        "large": sum(size >= _SMALLEST_BYTES for size in sizes),
        "loaded_bytes": sum(sizes),
        "mapped": len(mapped),
    }


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_if(_reason(facts), "npy_memory_map")
    return spec.changed(in_child=(*spec.in_child, NpyMapped()))


def _reason(facts: dict[str, Any]) -> str:
    if not facts["loads"]:
        if facts["mapped"]:
            return "arrays are loaded with mmap_mode already"
        return f"np.load is not called while samples are made (in the first {facts['samples']})"
    if not facts["large"]:
        mean = facts["loaded_bytes"] // facts["loads"]
        return f"the arrays are small ({bytes_text(mean)} on average): reading them is as quick"
    used = facts["delivered_bytes"] / max(1, facts["loaded_bytes"])
    if used >= _USED_WHOLE:
        return (
            f"the arrays are used whole: {percent(min(1.0, used))} of the bytes loaded arrive in "
            "the batches"
        )
    return ""


def code(spec: LoaderSpec) -> str:
    return (
        "# in the dataset:\n"
        'array = np.load(path, mmap_mode="r")  # reads nothing yet\n'
        "part = array[index].copy()            # reads what is used"
    )


TOGGLE = Toggle(
    name="npy_memory_map",
    title="Map .npy files into memory",
    effect="np.load maps the file instead of reading it, so that only the parts that a sample "
    "uses are read.",
    cost="Parts that are read one after the other in a cold file come in pieces; the file must "
    "stay as it is while it is mapped.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=54,
    saves=("array_load",),
)
