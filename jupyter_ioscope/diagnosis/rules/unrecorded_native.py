"""One call of a library makes the data on one core, because the library was told to."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules import _unrecorded, _words
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.diagnosis.unrecorded import Unrecorded
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import percent, significant

# The data is made in one line, more or less: its call is where the time goes.
LEAST_IN_LINE = 0.6
_OFF = ("0", "1", "false", "off", "no", "f", "n")


class _Library(NamedTuple):
    """A library with threads of its own: how a call of it looks, what switches the threads off."""

    name: str
    calls: tuple[str, ...]  # beginnings of full names, or methods with a dot before them
    settings: tuple[str, ...]


# Methods only where their names are the library's own.
_LIBRARIES = (
    _Library(
        "tokenizers",
        (".encode_batch", ".encode_batch_fast", ".batch_encode_plus", ".decode_batch"),
        ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"),
    ),
    _Library("polars", ("polars.", ".collect"), ("POLARS_MAX_THREADS",)),
    _Library("numexpr", ("numexpr.",), ("NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS")),
    _Library("pyarrow", ("pyarrow.",), ("ARROW_NUM_THREADS", "OMP_NUM_THREADS")),
    _Library("torch", ("torch.",), ("torch.get_num_threads()",)),
    _Library(
        "numpy",
        ("numpy.dot", "numpy.matmul", "numpy.linalg.", "numpy.einsum", "numpy.tensordot"),
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    ),
)


def judge(facts: Facts) -> Finding | None:
    """What the cell would gain if the library used all cores."""
    cell = _unrecorded.unrecorded(facts)
    if cell is None or cell.cores < 2:
        return None
    part = cell.computing_for_data
    calls, in_line = cell.called
    if part < _unrecorded.LEAST_PART or in_line < LEAST_IN_LINE or cell.all_cores_busy:
        return None
    for library in _LIBRARIES:
        call = next((name for name in calls if _is_of(name, library)), "")
        setting = _switched_off(cell, library) if call else ""
        if setting:
            return _finding(facts, cell, part * in_line, library.name, call, setting)
    return None


def _is_of(name: str, library: _Library) -> bool:
    return any(name == call or (call.endswith(".") and name.startswith(call))
               for call in library.calls)  # fmt: skip


def _switched_off(cell: Unrecorded, library: _Library) -> str:
    """`TOKENIZERS_PARALLELISM=false`, or empty."""
    for name, value in cell.profile.machine.native_threads:
        if name in library.settings and value.strip().lower() in _OFF:
            return f"{name}={value.strip()}"
    return ""


def _finding(
    facts: Facts, cell: Unrecorded, part: float, library: str, call: str, setting: str
) -> Finding:
    saved = _unrecorded.spread_over_cores(cell)
    name = setting.partition("=")[0]
    remedy = (
        "torch.set_num_threads(os.cpu_count())"
        if name.startswith("torch.")
        else f'{name}="true"' if setting.lower().endswith("false") else f"{name} unset"
    )  # fmt: skip
    return _unrecorded.of_cell(
        cell,
        part * saved,
        cell.error(part) * saved,
        cause="native_threads_off",
        resource="main_cpu",
        title=f"{library} was told to use one thread",
        evidence=(
            f"{setting} is set, and {percent(part)} of the cell's time is in a line that calls "
            f"{call.lstrip('.')}.",
            f"The process used {significant(cell.cores_used, 2)} of {_words.cores_text(facts)}.",
        ),
        advice=f"Let {library} use all cores: {remedy}, set before it is used for the first time. "
        "Where worker processes call it, leave it at one thread a worker and use more workers.",
        refines=("no_workers_cpu_bound", "decode_cpu"),
    )


RULE = Rule("unrecorded_native", judge, without_batches=True)
