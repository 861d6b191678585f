"""Reads the probes on their beat and keeps what they gave. Runs in the helper process."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from array import array
from collections.abc import Iterable

from jupyter_ioscope.capture.probes._probe import (
    Probe,
    Reader,
    SeriesInfo,
    Target,
    reason_of,
)
from jupyter_ioscope.model.profile import Gap

NO_PROC = "no /proc on this system"
_MAX_READINGS = 20_000  # a series: 83 min at 4 Hz; then every second reading is forgotten
_MAX_FAILURES = 3
_SLOWEST_OPEN_S = 1.0


class Recorded:
    """One series while it grows."""

    def __init__(self, info: SeriesInfo) -> None:
        self.info = info
        self.time_ns, self.values = array("q"), array("d")

    def add(self, time_ns: int, value: float) -> None:
        self.time_ns.append(time_ns)
        self.values.append(value)
        if len(self.values) > _MAX_READINGS:
            self.time_ns, self.values = self.time_ns[::2], self.values[::2]


class _Opened:
    def __init__(self, probe: Probe, reader: Reader) -> None:
        self.probe, self.reader = probe, reader
        self.series = [Recorded(info) for info in reader.series]
        self.due_s = 0.0
        self.failures = 0


class Gauges:
    """All probes of one profile. A probe that fails becomes a gap and never hides the others."""

    def __init__(self, probes: Iterable[Probe], target: Target) -> None:
        self._open: list[_Opened] = []
        self._ended: list[_Opened] = []
        self._gaps: list[Gap] = []
        self._opening: list[threading.Thread] = []
        for probe in probes:
            if probe.slow:
                thread = threading.Thread(
                    target=self._add, args=(probe, target), name=probe.what, daemon=True
                )
                thread.start()
                self._opening.append(thread)
            else:
                self._add(probe, target)

    def _add(self, probe: Probe, target: Target) -> None:
        try:
            self._open.append(_Opened(probe, probe.open(target)))
        except FileNotFoundError as error:
            there = os.path.isdir(f"{target.proc}/self")
            self._gaps.append(Gap(probe.what, reason_of(error) if there else NO_PROC))
        except Exception as error:
            self._gaps.append(Gap(probe.what, reason_of(error)))

    def finish_opening(self) -> None:
        """Wait a little for the slow probes; one that never opens becomes a gap."""
        for thread in self._opening:
            thread.join(_SLOWEST_OPEN_S)
            if thread.is_alive():
                self._gaps.append(Gap(thread.name, "opening it took too long"))
        self._opening.clear()

    def read(self, everything: bool = False) -> None:
        """Read the probes that are due; `everything` reads them all, for the first and last."""
        now_s = time.monotonic()
        for opened in list(self._open):
            if everything or now_s >= opened.due_s:
                opened.due_s = now_s + opened.probe.period_s
                self._read_one(opened)

    def _read_one(self, opened: _Opened) -> None:
        try:
            values = opened.reader.read()
        except Exception as error:
            opened.failures += 1
            if opened.failures >= _MAX_FAILURES:
                self._gaps.append(Gap(opened.probe.what, f"stopped working: {reason_of(error)}"))
                self._end(opened)
            return
        opened.failures = 0
        time_ns = time.monotonic_ns()
        for series, value in zip(opened.series, values, strict=False):
            if value is not None:
                series.add(time_ns, float(value))

    def _end(self, opened: _Opened) -> None:
        with contextlib.suppress(Exception):
            opened.reader.close()
        with contextlib.suppress(ValueError):
            self._open.remove(opened)
        self._ended.append(opened)

    def newest(self) -> dict[str, float]:
        """The last value of each series."""
        return {item.info.name: item.values[-1] for item in self.series() if len(item.values)}

    def series(self) -> list[Recorded]:
        return [item for opened in [*self._ended, *self._open] for item in opened.series]

    def gaps(self) -> list[Gap]:
        found = list(self._gaps)
        for opened in [*self._ended, *self._open]:
            found += opened.reader.gaps
            found += [
                Gap(item.info.name, "the machine gave no reading")
                for item in opened.series
                if not len(item.values) and opened.failures == 0
            ]
        return found

    def gpus(self) -> list[str]:
        return [
            fact
            for opened in [*self._ended, *self._open]
            if opened.probe.name == "gpu"
            for fact in opened.reader.facts
        ]

    def close(self) -> None:
        for opened in list(self._open):
            self._end(opened)
