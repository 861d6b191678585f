"""Batches put into pinned memory, from where accelerators copy faster."""

from __future__ import annotations

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.code import code_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle


def refuse(spec: LoaderSpec) -> str:
    if spec.pin_memory:
        return "pin_memory is on already"
    if not accelerator():
        return (
            "there is no accelerator that copies from pinned memory, and without one torch pins "
            "nothing"
        )
    return ""


def accelerator() -> bool:
    """Whether torch sees a device that pinned memory serves. Nothing is initialised: asking CUDA
    itself would make this process unable to fork (torch notes that of cuda.is_available)."""
    torch = loaded("torch")
    if torch is None:
        return False
    if torch.cuda.is_initialized():
        return True
    if not torch.backends.cuda.is_built():
        xpu = getattr(torch, "xpu", None)
        return bool(xpu is not None and xpu.is_initialized())
    try:
        return bool(torch.cuda._device_count_nvml() > 0)
    except Exception:  # a private function: where it is gone, only an initialised device counts
        return False


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec.changed(pin_memory=True)


def code(spec: LoaderSpec) -> str:
    return code_of(spec, apply(spec)) + (
        "\n# in the loop: batch.to(device, non_blocking=True), so that the copy overlaps the step"
    )


TOGGLE = Toggle(
    name="pin_memory",
    title="Pin batches in memory",
    effect="A thread copies each batch into pinned memory, from which an accelerator reads it "
    "without another copy and while it computes.",
    cost="One more copy of each batch in a thread of the main process, and memory that cannot be "
    "swapped out. Trials do not copy to the device, so they show this cost and not the gain of the "
    "copy itself.",
    refuse=refuse,
    apply=apply,
    code=code,
    order=30,
)
