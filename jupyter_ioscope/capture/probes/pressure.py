"""Pressure stall information: how long threads waited for a core, a disk, or memory."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.capture.probes._files import FileReader, KeptFile
from jupyter_ioscope.capture.probes._probe import Probe, ProbeError, Target, reason_of
from jupyter_ioscope.capture.probes._series import SERIES
from jupyter_ioscope.model.profile import Gap

_LINES = (("cpu", b"some"), ("io", b"some"), ("io", b"full"), ("memory", b"some"))


class PressureReader(FileReader):
    def __init__(self, target: Target) -> None:
        super().__init__([])
        self._sources: list[tuple[KeptFile, bytes]] = []
        series = []
        for resource, line in _LINES:
            try:
                file = self.keep(f"{target.proc}/pressure/{resource}", 512)
                total_us(file.read(), line)
            except (OSError, ValueError) as error:
                self.gaps.append(Gap(f"{resource} pressure ({line.decode()})", reason_of(error)))
                continue
            self._sources.append((file, line))
            series.append(SERIES[f"psi_{resource}_{line.decode()}_us"])
        self.series = series
        if not series:
            raise ProbeError("this Linux kernel gives no pressure stall information")

    def read(self) -> Sequence[float | None]:
        return [total_us(file.read(), line) for file, line in self._sources]


def total_us(raw: bytes, line: bytes) -> int:
    """The `total=` of one line of a pressure file, in microseconds.

    Raises:
        ValueError: the file has no such line.
    """
    for text in raw.splitlines():
        if text.startswith(line):
            return int(text[text.index(b"total=") + 6 :])
    raise ValueError(f"no line {line.decode()!r}")


PROBE = Probe("pressure", "pressure stall information", PressureReader)
