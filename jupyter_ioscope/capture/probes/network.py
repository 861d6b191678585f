"""Bytes over the network, as the watched process's network namespace counts them."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_ioscope.capture.probes._files import FileReader
from jupyter_ioscope.capture.probes._probe import Probe, Target
from jupyter_ioscope.capture.probes._series import SERIES


class NetworkReader(FileReader):
    def __init__(self, target: Target) -> None:
        super().__init__([SERIES["net_received_bytes"], SERIES["net_sent_bytes"]])
        self._dev = self.keep(f"{target.proc}/{target.pid}/net/dev")

    def read(self) -> Sequence[float | None]:
        received = sent = 0
        for line in self._dev.read().splitlines()[2:]:
            name, _, numbers = line.partition(b":")
            fields = numbers.split()
            if name.strip() != b"lo" and len(fields) >= 9:
                received += int(fields[0])
                sent += int(fields[8])
        return [received, sent]


PROBE = Probe("network", "bytes over the network", NetworkReader)
