"""One native thread in each worker."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.optional import installed, loaded, need
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle

# Read by libraries when they are loaded; those that are there already are told by threadpoolctl.
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class OneThread:
    """A worker_init_fn: the user's own first, whose numbers of threads this one then replaces."""

    inner: Any = None

    def __call__(self, worker_id: int) -> None:
        if self.inner is not None:
            self.inner(worker_id)
        for name in _VARIABLES:
            os.environ[name] = "1"
        import torch

        torch.set_num_threads(1)
        if installed("threadpoolctl"):
            need("threadpoolctl", "one thread in each worker").threadpool_limits(1)
        opencv = loaded("cv2")
        if opencv is not None:
            with contextlib.suppress(Exception):
                opencv.setNumThreads(0)


_LIMITS = (
    "    for name in {names!r}:",
    '        os.environ[name] = "1"',
    "    torch.set_num_threads(1)",
)


def _lines(spec: LoaderSpec) -> list[str]:
    """A function that first does what the user's own does."""
    own, native = spec.worker_init_fn is not None, installed("threadpoolctl")
    lines = ["import os", *(["import threadpoolctl"] if native else []), "import torch"]
    lines += [*(["own_init = loader.worker_init_fn"] if own else []), "", ""]
    lines += ["def one_thread(worker_id):", *(["    own_init(worker_id)"] if own else [])]
    lines += [line.format(names=_VARIABLES) for line in _LIMITS]
    lines += ["    threadpoolctl.threadpool_limits(1)"] if native else []
    return [*lines, "", ""]


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers == 0:
        return "there are no workers: num_workers is 0"
    if isinstance(spec.worker_init_fn, OneThread):
        return "each worker is told to use one thread already"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(
        worker_init_fn=OneThread(spec.worker_init_fn),
        before=(*spec.before, *_lines(spec)),
        written=(*spec.written, ("worker_init_fn", "one_thread")),
    )


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="threads_per_worker",
    title="One native thread in each worker",
    effect="Linear algebra, OpenMP and OpenCV use one thread in every worker, so that the workers "
    "no longer fight for the cores.",
    cost="A worker that has cores to itself is slower at large matrices. Results may differ in the "
    "last bit, because sums are taken in another order.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=40,
)
