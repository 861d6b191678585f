"""GPU utilisation and memory through NVML; each field may be missing on its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jupyter_ioscope.capture.probes._probe import Probe, ProbeError, SeriesInfo, Target
from jupyter_ioscope.capture.probes._series import gpu_series
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.optional import installed


class GpuReader:
    def __init__(self, target: Target) -> None:
        if not installed("pynvml"):
            raise ProbeError("nvidia-ml-py is not installed: pip install 'jupyter-ioscope[gpu]'")
        import pynvml

        self._nvml: Any = pynvml
        self.series: Sequence[SeriesInfo] = ()
        self.gaps: list[Gap] = []
        self.facts: Sequence[str] = ()
        self._fields: list[Callable[[], float]] = []
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise ProbeError(f"NVML: {error}") from error
        try:
            self._add_all()
        except Exception:
            self.close()
            raise

    def _add_all(self) -> None:
        count = self._nvml.nvmlDeviceGetCount()
        if not count:
            raise ProbeError("NVML knows no GPU")
        for number in range(count):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
            except self._nvml.NVMLError as error:
                self.gaps.append(Gap(f"GPU {number}", f"NVML: {error}"))
                continue
            self.facts = (*self.facts, self._name(handle, number))
            busy, memory = gpu_series(number)
            self._add(busy, f"utilisation of GPU {number}", partial(self._busy, handle))
            self._add(memory, f"memory of GPU {number}", partial(self._memory, handle))

    def _name(self, handle: Any, number: int) -> str:
        with contextlib.suppress(self._nvml.NVMLError):
            name = self._nvml.nvmlDeviceGetName(handle)
            return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        return f"GPU {number}"

    def _add(self, info: SeriesInfo, what: str, field: Callable[[], float]) -> None:
        try:
            field()
        except self._nvml.NVMLError as error:
            self.gaps.append(Gap(what, f"NVML: {error}"))
            return
        self.series = (*self.series, info)
        self._fields.append(field)

    def _busy(self, handle: Any) -> float:
        return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100

    def _memory(self, handle: Any) -> float:
        return float(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)

    def read(self) -> Sequence[float | None]:
        return [self._read_one(field) for field in self._fields]

    def _read_one(self, field: Callable[[], float]) -> float | None:
        try:
            return field()
        except self._nvml.NVMLError:
            return None

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._nvml.nvmlShutdown()


PROBE = Probe("gpu", "GPU utilisation and memory", GpuReader, period_s=0.5, slow=True)
