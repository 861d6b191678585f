"""Arrays and lists of numbers joined into tensors in one go."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from types import FrameType
from typing import Any

from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._fast_tensor import FastTensors, by_numpy
from jupyter_ioscope.trials.toggles._learn import first_batches, raise_refusal, short

_LIBRARY = ("/site-packages/", "/dist-packages/", "/jupyter_ioscope/")


def refuse(spec: LoaderSpec) -> str:
    if any(isinstance(change, FastTensors) for change in spec.in_child):
        return "it is on already"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """Where lists become tensors, and whether the way by numpy gives the same bytes there."""
    import torch

    seen: Counter[str] = Counter()
    wrong: list[str] = []

    def watched(original: Any) -> Any:
        @functools.wraps(original)
        def made(data: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(data, *args, **kwargs)
            if type(data) in (list, tuple) and len(data) and not args and not kwargs:
                fast = by_numpy(data)
                if fast is not None:
                    seen[_caller()] += 1
                    same = fast.dtype == result.dtype and torch.equal(fast, result)
                    if not same and not (fast != fast).any():
                        wrong.append(f"{fast.dtype} for {result.dtype}")
            return result

        return made

    torch.tensor, torch.as_tensor = watched(torch.tensor), watched(torch.as_tensor)
    try:
        batches = sum(1 for _ in first_batches(spec))
    except Exception as error:
        return {"refusal": f"the first batches cannot be made: {short(error)}"}
    if wrong:
        return {"refusal": f"joining by numpy gives another tensor ({wrong[0]})"}
    if not seen:
        return {
            "refusal": f"none of the first {batches} batches makes tensors of lists of arrays or "
            "of lists of numbers"
        }
    return {"places": seen.most_common(3), "batches": batches}


def _caller() -> str:
    """File and line of the code outside of libraries that asked."""
    frame: FrameType | None = sys._getframe(2)
    named = ""
    while frame is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        text = f"{file}:{frame.f_lineno}"
        named = named or text
        if not any(part in file for part in _LIBRARY):
            return text
        frame = frame.f_back
    return named


def apply(spec: LoaderSpec) -> LoaderSpec:
    # Where lists are joined is only known after a look; `apply_learnt` says it in the code.
    return spec.changed(in_child=(*spec.in_child, FastTensors()))


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    lines = [f"#     {place}  ({count} times in {facts['batches']} batches)"
             for place, count in facts["places"]]  # fmt: skip
    return apply(spec).changed(before=(*spec.before, *_code().splitlines(), "# here:", *lines))


def _code() -> str:
    return (
        "# where a list of arrays or of lists becomes a tensor, instead of torch.tensor(rows):\n"
        "# torch.from_numpy(numpy.stack(rows))                  of arrays\n"
        "# torch.from_numpy(numpy.array(rows, dtype='float32'))  of lists of numbers"
    )


def code(spec: LoaderSpec) -> str:
    return _code()


TOGGLE = Toggle(
    name="fast_collate",
    title="Join arrays in one go",
    effect="Lists of arrays and of numbers become tensors by way of numpy, in blocks; torch.tensor "
    "takes a list apart number by number.",
    cost="None: the tensors are the same, which is looked at first and again in the samples.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=60,
    saves=("tensor_build", "collate"),
)
