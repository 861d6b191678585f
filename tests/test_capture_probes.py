"""Probes read this machine, recorded machines, and machines that have nothing to give."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_ioscope import registry
from jupyter_ioscope.capture import probes
from jupyter_ioscope.capture.gauges import NO_PROC, Gauges
from jupyter_ioscope.capture.probes import cgroup, cpu, disk, memory, network, pressure
from jupyter_ioscope.capture.probes._files import TreeTotals
from jupyter_ioscope.capture.probes._probe import Probe, ProbeError, SeriesInfo, Target
from jupyter_ioscope.capture.probes._series import SERIES
from jupyter_ioscope.model.profile import Gap

needs_proc = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's /proc")


@dataclass
class Here:
    """A target: this process unless told otherwise."""

    proc: str = "/proc"
    sys: str = "/sys"
    pid: int = os.getpid()
    others: tuple[int, ...] = ()

    def pids(self) -> Iterable[int]:
        return (self.pid, *self.others)


def _values(reader: object) -> dict[str, float | None]:
    names = [info.name for info in reader.series]  # type: ignore[attr-defined]
    return dict(zip(names, reader.read(), strict=True))  # type: ignore[attr-defined]


def test_every_probe_is_found_by_its_constant() -> None:
    found = {probe.name for probe in registry.plugins(probes, "PROBE")}
    assert found == {"cgroup", "cpu", "disk", "gpu", "memory", "network", "pressure"}


@pytest.mark.timeout(180)
@needs_proc
def test_cpu_time_of_the_tree_grows_with_the_work_done() -> None:
    reader = cpu.PROBE.open(Here())
    before, used_s = _values(reader), time.process_time()
    while time.process_time() - used_s < 0.3:
        sum(range(1000))
    after = _values(reader)
    reader.close()
    for name in ("tree_cpu_ns", "machine_busy_ns"):
        first, second = before[name], after[name]
        assert first is not None
        assert second is not None
        assert second - first >= 0.25e9, name


@needs_proc
def test_memory_that_is_touched_shows_in_pss() -> None:
    first = _values(memory.PROBE.open(Here()))["tree_pss_bytes"]
    block = bytearray(64_000_000)
    second = _values(memory.PROBE.open(Here()))["tree_pss_bytes"]
    assert first is not None
    assert second is not None
    assert second - first > 0.9 * len(block)


@pytest.mark.timeout(180)
@needs_proc
def test_pss_counts_shared_pages_once_and_rss_twice() -> None:
    block = bytearray(os.urandom(1000)) * 60_000
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    try:
        alone, both = Here(), Here(others=(child,))
        rss = [_values(memory.PROBE.open(it))["tree_rss_bytes"] for it in (alone, both)]
        pss = [_values(memory.PROBE.open(it))["tree_pss_bytes"] for it in (alone, both)]
    finally:
        os.close(writer)
        os.waitpid(child, 0)
    assert None not in (*rss, *pss)
    assert rss[1] - rss[0] > 0.9 * len(block)  # type: ignore[operator]
    # Both together take hardly more than one of them alone, seen by itself, does.
    assert pss[1] < rss[0] + 0.5 * len(block)  # type: ignore[operator]


@needs_proc
def test_bytes_read_are_counted_even_from_the_page_cache(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(3_000_000))
    reader = disk.PROBE.open(Here())
    before = _values(reader)["tree_read_chars"]
    path.read_bytes()
    after = _values(reader)["tree_read_chars"]
    reader.close()
    assert before is not None
    assert after is not None
    assert after - before >= 3_000_000


@needs_proc
@pytest.mark.timeout(180)
def test_what_an_ended_process_read_stays_in_the_sum(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(5_000_000))
    reader = disk.PROBE.open(target := Here())
    before = _values(reader)["tree_read_chars"]
    code = f"open({str(path)!r}, 'rb').read(); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        target.others = (child.pid,)
        during = _values(reader)["tree_read_chars"]
        child.communicate(b"\n")
    target.others = ()
    after = _values(reader)["tree_read_chars"]
    reader.close()
    assert before is not None
    assert during is not None
    assert after is not None
    assert during - before >= 5_000_000
    assert after - before < 10_000_000, "counted once, not in the child and in its parent"
    assert after >= during


def test_a_total_never_falls_when_a_process_is_reaped_by_a_stranger() -> None:
    totals = TreeTotals(1)
    rows = [[(10,), (5,)], [(11,), (9,)], [(12,)], [(14,)]]
    assert [totals.update(row)[0] for row in rows] == [15, 20, 20, 22]


def test_network_leaves_loopback_out(tmp_path: Path) -> None:
    (tmp_path / "1/net").mkdir(parents=True)
    text = "Inter-| R | T\n face |b p\n"
    text += "    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
    text += "  eth0:1000 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\n"
    text += "  eth1: 200 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n"
    (tmp_path / "1/net/dev").write_text(text)
    reader = network.PROBE.open(Here(proc=str(tmp_path), pid=1))
    assert _values(reader) == {"net_received_bytes": 1200, "net_sent_bytes": 34}
    reader.close()


def test_pressure_takes_what_this_kernel_has(tmp_path: Path) -> None:
    folder = tmp_path / "pressure"
    folder.mkdir()
    (folder / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n")
    (folder / "io").write_text(
        "some avg10=1.00 avg60=0.00 avg300=0.00 total=11\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
    )
    reader = pressure.PROBE.open(Here(proc=str(tmp_path)))
    assert _values(reader) == {
        "psi_cpu_some_us": 77,
        "psi_io_some_us": 11,
        "psi_io_full_us": 5,
    }
    assert [gap.what for gap in reader.gaps] == ["memory pressure (some)"]
    reader.close()


def test_a_kernel_without_pressure_information_is_a_stated_gap(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="no pressure"):
        pressure.PROBE.open(Here(proc=str(tmp_path)))


def _cgroups(root: Path, line: str, mount: str) -> str:
    (root / "proc/7").mkdir(parents=True)
    (root / "proc/self").mkdir()
    (root / "proc/7/cgroup").write_text(line)
    (root / "proc/self/mountinfo").write_text(mount)
    return str(root / "proc")


def test_the_quota_of_a_v2_cgroup_above_is_found(tmp_path: Path) -> None:
    mount = f"40 31 0:38 / {tmp_path}/fs rw - cgroup2 cgroup2 rw\n"
    proc = _cgroups(tmp_path, "0::/pod/box\n", mount)
    (tmp_path / "fs/pod/box").mkdir(parents=True)
    held = "usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 250\n"
    (tmp_path / "fs/pod/box/cpu.stat").write_text(held.replace("250", "0"))
    (tmp_path / "fs/pod/box/cpu.max").write_text("max 100000\n")
    (tmp_path / "fs/pod/cpu.stat").write_text(held)
    (tmp_path / "fs/pod/cpu.max").write_text("200000 100000\n")
    reader = cgroup.PROBE.open(Here(proc=proc, pid=7))
    assert _values(reader) == {"cgroup_throttled_ns": 250_000, "cgroup_throttled_periods": 3}
    reader.close()


def test_a_v1_cgroup_seen_from_inside_a_container_is_found(tmp_path: Path) -> None:
    # The path is the host's, the mount shows only the part below it.
    mount = f"40 31 0:38 /docker/abc {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    proc = _cgroups(tmp_path, "4:cpu,cpuacct:/docker/abc\n0::/\n", mount)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.stat").write_text("nr_periods 9\nnr_throttled 4\nthrottled_time 777\n")
    reader = cgroup.PROBE.open(Here(proc=proc, pid=7))
    assert _values(reader) == {"cgroup_throttled_ns": 777, "cgroup_throttled_periods": 4}
    reader.close()


def test_no_counting_cgroup_is_a_stated_gap(tmp_path: Path) -> None:
    proc = _cgroups(tmp_path, "0::/\n", "")
    with pytest.raises(ProbeError, match="throttling"):
        cgroup.PROBE.open(Here(proc=proc, pid=7))


def test_without_proc_every_probe_of_the_system_is_a_gap_with_that_reason(tmp_path: Path) -> None:
    wanted = [probe for probe in registry.plugins(probes, "PROBE") if probe.name != "gpu"]
    gauges = Gauges(wanted, Here(proc=str(tmp_path / "none"), sys=str(tmp_path / "none")))
    gauges.read(everything=True)
    assert gauges.series() == []
    reasons = {gap.what: gap.reason for gap in gauges.gaps()}
    assert set(reasons) >= {probe.what for probe in wanted if probe.name not in ("disk",)}
    assert NO_PROC in reasons.values()
    gauges.close()


class _Breaking:
    def __init__(self, target: Target) -> None:
        self.series: Sequence[SeriesInfo] = (SERIES["tree_cpu_ns"],)
        self.facts: Sequence[str] = ()
        self.gaps: list[Gap] = []
        self.reads = 0

    def read(self) -> Sequence[float | None]:
        self.reads += 1
        if self.reads > 1:
            raise OSError("gone bad")
        return [1.0]

    def close(self) -> None:
        pass


def test_a_probe_that_breaks_becomes_a_gap_and_hides_no_other() -> None:
    broken = Probe("broken", "a broken thing", _Breaking)
    never = Probe("never", "a thing that never opens", _never)
    gauges = Gauges([broken, never, pressure.PROBE, network.PROBE], Here())
    for _ in range(5):
        gauges.read(everything=True)
    reasons = {gap.what: gap.reason for gap in gauges.gaps()}
    assert reasons["a broken thing"] == "stopped working: gone bad"
    assert reasons["a thing that never opens"] == "not here"
    lengths = {item.info.name: len(item.values) for item in gauges.series()}
    assert lengths["tree_cpu_ns"] == 1
    if Path("/proc/net/dev").exists():
        assert lengths["net_received_bytes"] == 5
    gauges.close()


def _never(target: Target) -> _Breaking:
    raise ProbeError("not here")


def test_every_documented_series_has_its_text() -> None:
    from jupyter_ioscope.capture.probes import _series

    assert _series.__doc__ is not None
    listed = {line.split()[0] for line in _series.__doc__.splitlines() if line.strip()}
    assert set(SERIES) <= listed


def test_exact_memory_is_read_more_rarely_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PSS on a clock of its own: every second while the tree grows, every third when it is calm."""
    now_s = [0.0]
    monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    folder = tmp_path / "7"
    folder.mkdir()
    (tmp_path / "meminfo").write_text("MemAvailable:  1000 kB\n")
    (folder / "smaps_rollup").write_text("00-ff ---p 0 00:00 0  [rollup]\nPss:   500 kB\n")
    reader = memory.PROBE.open(Here(proc=str(tmp_path), pid=7))

    def read_at(second: float, pages: int) -> bool:
        now_s[0] = second
        (folder / "statm").write_text(f"0 {pages} 0 0 0 0 0")
        return _values(reader)["tree_pss_bytes"] is not None

    assert [read_at(second, 1000 * second) for second in (1, 2, 3)] == [True] * 3
    assert [read_at(second, 3000) for second in (4, 5, 6)] == [False, False, True]
    assert read_at(7, 3100), "it grew"
    reader.close()
