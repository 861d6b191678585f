"""Libraries with threads of their own: how calls look, and what switches the threads off."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jupyter_ioscope.model.profile import Machine

_OFF = ("0", "1", "false", "off", "no", "f", "n")


class _Library(NamedTuple):
    name: str
    calls: tuple[str, ...]  # full names, their beginnings (with a dot at the end), or .methods
    settings: tuple[str, ...]


# Only what the libraries divide among threads; methods only where their names are the library's
# own. Making a tensor out of a list, for one, keeps one core busy whatever is set.
_LIBRARIES = (
    _Library(
        "tokenizers",
        (".encode_batch", ".encode_batch_fast", ".batch_encode_plus", ".decode_batch"),
        ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"),
    ),
    _Library("polars", ("polars.", ".collect"), ("POLARS_MAX_THREADS",)),
    _Library("numexpr", ("numexpr.",), ("NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS")),
    _Library("pyarrow", ("pyarrow.",), ("ARROW_NUM_THREADS", "OMP_NUM_THREADS")),
    _Library(
        "torch",
        (
            "torch.nn.functional.",
            "torch.linalg.",
            "torch.fft.",
            "torch.special.",
            *(
                f"torch.{name}"
                for name in (
                    "bmm", "cdist", "conv1d", "conv2d", "conv3d", "cos", "einsum", "erf", "exp",
                    "log", "matmul", "mm", "pow", "sigmoid", "sin", "softmax", "sqrt", "stft",
                    "tanh",
                )
            ),
            ".matmul",
            ".bmm",
        ),
        ("torch.get_num_threads()",),
    ),
    _Library(
        "numpy",
        ("numpy.dot", "numpy.matmul", "numpy.linalg.", "numpy.einsum", "numpy.tensordot"),
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    ),
)  # fmt: skip


class SwitchedOff(NamedTuple):
    """A library that was told to use one thread, a call of it, and the setting (`NAME=value`)."""

    library: str
    call: str
    setting: str

    @property
    def remedy(self) -> str:
        """What a user would write."""
        name, _, value = self.setting.partition("=")
        if name.startswith("torch."):
            return "torch.set_num_threads(os.cpu_count())"
        return f'{name}="true"' if value.lower() == "false" else f"{name} unset"


def switched_off(machine: Machine, calls: Iterable[str]) -> SwitchedOff | None:
    """The first library among `calls` whose threads a setting of this process switches off."""
    names = tuple(calls)
    for library in _LIBRARIES:
        call = next((name for name in names if _is_of(name, library)), "")
        for name, value in machine.native_threads if call else ():
            if name in library.settings and value.strip().lower() in _OFF:
                return SwitchedOff(library.name, call, f"{name}={value.strip()}")
    return None


def _is_of(name: str, library: _Library) -> bool:
    return any(
        name == call or (call.endswith(".") and name.startswith(call)) for call in library.calls
    )
