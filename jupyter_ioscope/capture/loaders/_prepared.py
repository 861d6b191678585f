"""What stands around a DataLoader: Accelerate's wrappers, and the Trainer that made them.

They iterate the DataLoader inside by its own `__iter__`, so it is recorded like any other. Whose it
is shows on the stack at that moment, once an epoch.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

_MODULE = "accelerate.data_loader"
_TRAINER = "transformers.trainer"
_DEEPEST = 40  # frames between a loader's iterator and the Trainer's loop


class Around(NamedTuple):
    """`wrapper`: the object of Accelerate. `trainer`: "train" or "eval" where a Trainer iterates
    it, else empty."""

    wrapper: Any
    trainer: str

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("prepared", "trainer" if self.trainer else "accelerate"),)

    def snapshot(self, inner: Any) -> Any:
        """A copy of the wrapper around `inner`, a copy of its loader."""
        copy = object.__new__(type(self.wrapper))
        copy.__dict__.update(self.wrapper.__dict__)
        copy.__dict__.update(base_dataloader=inner, _ioscope_trainer=self.trainer)
        return copy


def around(loader: Any, frame: FrameType | None) -> Around | None:
    """What wraps `loader`, whose `__iter__` the code of `frame` asks for; None for a plain one."""
    if frame is None or frame.f_globals.get("__name__") != _MODULE:
        return None
    wrapper = frame.f_locals.get("self")
    if getattr(wrapper, "base_dataloader", None) is not loader:
        return None
    return Around(wrapper, _below_a_trainer(frame.f_back))


def _below_a_trainer(frame: FrameType | None) -> str:
    """Which loop of a Trainer called: "train" or "eval" (also within training); "" for none."""
    for _ in range(_DEEPEST):
        if frame is None:
            break
        if frame.f_globals.get("__name__") == _TRAINER:
            return "eval" if frame.f_code.co_name in _EVALUATING else "train"
        frame = frame.f_back
    return ""


_EVALUATING = ("evaluation_loop", "prediction_loop", "evaluate", "predict")
