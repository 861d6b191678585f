"""The kernel's side of the helper process that watches it: start, stop, and what came of it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from jupyter_ioscope.capture import block, held_files, process_use, roles, stacks
from jupyter_ioscope.capture.cells import CellMap
from jupyter_ioscope.capture.harvest import unpack_series
from jupyter_ioscope.capture.helper_link import HelperError, HelperLink
from jupyter_ioscope.capture.observers.own_counters import read_own
from jupyter_ioscope.capture.pyspy import RawStack, parse_raw
from jupyter_ioscope.capture.request import SamplerRequest, SamplerResult
from jupyter_ioscope.capture.rights import Rights, allow_tracer, yama_level
from jupyter_ioscope.model.profile import Gap
from jupyter_ioscope.model.readings import Stacks

log = logging.getLogger("ioscope")

_COLD_START_S = 5.0  # a Python has to start first
_START_S = 1.5
_LIVE_S = 0.2
_STOP_S = 5.0
_YAMA_ASKS = 1


class Sampler:
    """Watches this process through one helper process, which is kept for the next profile.

    Nothing here raises for a helper that fails: the result then holds gaps with the reason.

    Args:
        proc: root of the proc file system; `IOSCOPE_PROC` or `/proc`.
        sys_root: root of the sys file system; `IOSCOPE_SYS` or `/sys`.
    """

    _shared: ClassVar[Sampler | None] = None

    def __init__(self, proc: str | None = None, sys_root: str | None = None) -> None:
        self._proc = proc or os.environ.get("IOSCOPE_PROC", "/proc")
        self._sys = sys_root or os.environ.get("IOSCOPE_SYS", "/sys")
        self._owner_pid = os.getpid()
        self._link: HelperLink | None = None
        self._lock = threading.Lock()
        self._request: SamplerRequest | None = None
        self._rights = _nothing("not started", stacks_wanted=False)
        self._asked_yama = False
        self._traced = False  # whether the helper that lives was asked for a trace

    @classmethod
    def shared(cls) -> Sampler:
        """The sampler of this process. A forked child gets one of its own."""
        current = cls._shared
        if current is not None and current._owner_pid != os.getpid():
            current._forget()
            current = None
        if current is None:
            current = cls._shared = cls()
            atexit.register(current.close)
        return current

    @classmethod
    def helper_pid(cls) -> int:
        """Process id of the helper that this process keeps; 0 when there is none."""
        link = cls._shared._link if cls._shared is not None else None
        return link.pid if link is not None else 0

    def _forget(self) -> None:
        if self._link is not None:
            self._link.forget()
        atexit.unregister(self.close)

    def start(self, request: SamplerRequest) -> Rights:
        """Begin watching; returns when py-spy has attached or it is known that it cannot.

        Takes at most about 0.5 s, and 5 s for the first profile of a kernel on a very busy machine.
        """
        self._request = request
        self._traced = self._traced or request.block_trace
        try:
            with self._lock:
                self._rights = self._start_helper(request)
        except HelperError as error:
            self._drop(kill=True)
            self._rights = _nothing(str(error), request.stacks)
        except BaseException:
            self._drop(kill=True)
            raise
        return self._rights

    def _start_helper(self, request: SamplerRequest) -> Rights:
        within_s = _START_S
        if self._link is None or not self._link.alive():
            self._drop(kill=True)
            self._link = HelperLink(self._proc, self._sys)
            within_s = _COLD_START_S
        if request.pid == os.getpid() and yama_level(self._proc) == _YAMA_ASKS:
            self._asked_yama = allow_tracer(self._link.pid)
        return Rights(**self._link.ask("start", within_s, request=asdict(request))["rights"])

    def live(self) -> dict[str, float]:
        """The newest value of each series; empty when nothing runs or the helper is busy."""
        if self._link is None or self._request is None or not self._lock.acquire(blocking=False):
            return {}
        try:
            return dict(self._link.ask("live", _LIVE_S)["live"])
        except HelperError:
            return {}
        finally:
            self._lock.release()

    def stop(self, workers: Mapping[int, int], consumer_tid: int, cells: CellMap) -> SamplerResult:
        """End watching and hand over what was seen.

        Where the stacks come from inside the processes (`Rights.stacks`), their files in the
        request's folder are read now: whoever started them has ended them before.

        Args:
            workers: process id -> worker id of every worker there was.
            consumer_tid: operating system's id of the thread whose loop was profiled.
            cells: names the cells in stacks.
        """
        request, self._request = self._request, None
        if request is None:
            return _failed("the sampler was not started", None)
        try:
            packed = self._stop_helper()
        except HelperError as error:
            return _failed(str(error), self._inside(request, workers, consumer_tid, cells))
        try:
            return self._result(request, packed, workers, consumer_tid, cells)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            log.warning("the helper's answer could not be read", exc_info=True)
            return _failed(f"the helper's answer could not be read: {error}", None)
        finally:
            for path, _ in packed.get("stack_files", ()):
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def _stop_helper(self) -> dict[str, Any]:
        try:
            with self._lock:
                if self._link is None:
                    raise HelperError(self._rights.reason)
                return self._link.ask("stop", _STOP_S)
        except HelperError:
            self._drop(kill=True)
            raise
        finally:
            if self._asked_yama:
                allow_tracer(0)
                self._asked_yama = False

    def _result(
        self,
        request: SamplerRequest,
        packed: Mapping[str, Any],
        workers: Mapping[int, int],
        consumer_tid: int,
        cells: CellMap,
    ) -> SamplerResult:
        gaps = [Gap(*gap) for gap in packed["gaps"]]
        raw, source, reason = self._raw_stacks(request, packed)
        names = {(stack.pid, stack.tid): stack.thread for stack in raw if stack.tid}
        threads = roles.readings(packed["threads"], request.pid, consumer_tid, workers, names)
        built = self._build(request, raw, source, workers, consumer_tid, cells)
        if reason and request.stacks:
            gaps.append(Gap("stacks from outside (py-spy)" if built else "stacks", reason))
        tier = "in_process" if not threads else "full" if packed["attach"] else "no_ptrace"
        return SamplerResult(
            tier=tier,
            threads=threads,
            series={item["name"]: unpack_series(item) for item in packed["series"]},
            stacks=built,
            held_files=held_files.unpacked(packed["held_files"]),
            processes=process_use.uses(
                packed["processes"],
                read_own(request.session_dir),
                workers,
                request.pid,
                self._proc,
            ),
            gaps=tuple(dict.fromkeys(gaps)),
            gpus=tuple(packed["gpus"]),
            block=block.unpacked(packed["block"], request.pid, workers, self._sys),
            sampler_cpu_s=packed["sampler_cpu_s"],
            stacks_cpu_s=packed["stacks_cpu_s"],
        )

    def _raw_stacks(
        self, request: SamplerRequest, packed: Mapping[str, Any]
    ) -> tuple[list[RawStack], str, str]:
        """(stacks, source, reason why py-spy gave none)."""
        reason = str(packed["no_stacks"])
        raw: list[RawStack] = []
        for path, weight in () if reason else packed["stack_files"]:
            try:
                text = Path(path).read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                reason = f"py-spy's file could not be read: {error}"
            else:
                raw += [stack._replace(weight=int(weight)) for stack in parse_raw(text)]
        if raw:
            return raw, "py-spy", ""
        if packed["stack_files"] and not reason:
            reason = "py-spy took no sample"
        return stacks.read_in_process(request.session_dir), "in-process", reason

    def _inside(
        self,
        request: SamplerRequest,
        workers: Mapping[int, int],
        consumer_tid: int,
        cells: CellMap,
    ) -> Stacks | None:
        raw = stacks.read_in_process(request.session_dir)
        return self._build(request, raw, "in-process", workers, consumer_tid, cells)

    def _build(
        self,
        request: SamplerRequest,
        raw: list[RawStack],
        source: str,
        workers: Mapping[int, int],
        consumer_tid: int,
        cells: CellMap,
    ) -> Stacks | None:
        if not raw:
            return None
        built = stacks.build(
            raw,
            source=source,
            rate_hz=request.stack_rate_hz,
            pid=request.pid,
            consumer_tid=consumer_tid,
            workers=workers,
            cells=cells,
            without=frozenset({self._rights.helper_pid}),
        )
        return built if built.stacks else None

    def _drop(self, kill: bool) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close(kill)
            if kill and self._traced:
                block.sweep(self._proc, self._sys)
                self._traced = False

    def close(self) -> None:
        """End the helper process; the next start makes a new one. Harmless in a forked child."""
        if self._owner_pid != os.getpid():
            return
        self._drop(kill=False)


def _nothing(reason: str, stacks_wanted: bool) -> Rights:
    return Rights(False, reason, False, None, 0, "in-process" if stacks_wanted else "off")


def _failed(reason: str, built: Stacks | None) -> SamplerResult:
    gaps = [
        Gap(what, reason)
        for what in ("thread states and exact thread times", "counters of tree and machine")
    ]
    if built is None:
        gaps.append(Gap("stacks", reason))
    return SamplerResult(tier="in_process", stacks=built, gaps=tuple(gaps))
