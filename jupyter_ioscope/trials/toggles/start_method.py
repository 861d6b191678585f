"""Workers forked from the program instead of started as new ones."""

from __future__ import annotations

import multiprocessing
import sys

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec, start_method
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    if spec.num_workers == 0:
        return "there are no workers to start: num_workers is 0"
    if start_method(spec) == "fork":
        return "workers are forked already"
    if sys.platform != "linux":
        return f"forking a running program is not safe on {sys.platform}"
    torch = loaded("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "CUDA is in use, and a forked worker that touches it fails"
    return ""


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(
        multiprocessing_context=multiprocessing.get_context("fork"),
        written=(*spec.written, ("multiprocessing_context", '"fork"')),
    )


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec))


TOGGLE = Toggle(
    name="start_method",
    title="Forked workers",
    effect="Workers begin as copies of this process: they import nothing again, and the dataset "
    "is not pickled and sent to each of them.",
    cost="A worker that is forked while another thread holds a lock may hang on it, and CUDA "
    "must not be used in workers. The gain is in start-up only.",
    refuse=refuse,
    apply=apply,
    code=code,
    end_point="epochs",
    order=5,
)
