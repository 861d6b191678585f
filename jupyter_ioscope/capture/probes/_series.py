"""Every series the probes record: the one place where their names and meanings stand.

name                          what
tree_cpu_ns                   CPU time of the process tree, ended processes included
machine_busy_ns               CPU time of all programs of the machine, all cores together
machine_iowait_ns             cores idle while a thread waited for a disk, all cores together
machine_steal_ns              time a virtual machine's cores were given to somebody else
tree_pss_bytes                memory of the tree, shared pages counted once
tree_rss_bytes                memory of the tree, shared pages counted in every process
machine_available_bytes       memory that programs could still get without swapping
tree_read_bytes               bytes the tree fetched from a device (not from the page cache)
tree_write_bytes              bytes the tree sent towards a device
tree_read_chars               bytes the tree's read calls returned, page cache included
machine_disk_read_bytes       bytes read from all whole disks
machine_disk_write_bytes      bytes written to all whole disks
machine_disk_busy_ns          time the busiest whole disk had requests open
net_received_bytes            bytes received on all interfaces but loopback
net_sent_bytes                bytes sent
psi_cpu_some_us               time in which some thread waited for a core
psi_io_some_us                time in which some thread waited for a disk
psi_io_full_us                time in which all non-idle threads waited for a disk
psi_memory_some_us            time in which some thread waited for memory
cgroup_throttled_ns           time the cgroup was held back by its CPU quota
cgroup_throttled_periods      quota periods in which it was held back
gpu<n>_busy_fraction          share of time a kernel was running on the GPU (NVML)
gpu<n>_memory_bytes           device memory in use, by all programs
"""

from __future__ import annotations

from jupyter_ioscope.capture.probes._probe import SeriesInfo


def _cumulative(name: str, unit: str, scope: str) -> SeriesInfo:
    return SeriesInfo(name, unit, "cumulative", scope)


_ALL = (
    _cumulative("tree_cpu_ns", "ns", "tree"),
    _cumulative("machine_busy_ns", "ns", "machine"),
    _cumulative("machine_iowait_ns", "ns", "machine"),
    _cumulative("machine_steal_ns", "ns", "machine"),
    SeriesInfo("tree_pss_bytes", "bytes", "gauge", "tree"),
    SeriesInfo("tree_rss_bytes", "bytes", "gauge", "tree"),
    SeriesInfo("machine_available_bytes", "bytes", "gauge", "machine"),
    _cumulative("tree_read_bytes", "bytes", "tree"),
    _cumulative("tree_write_bytes", "bytes", "tree"),
    _cumulative("tree_read_chars", "bytes", "tree"),
    _cumulative("machine_disk_read_bytes", "bytes", "machine"),
    _cumulative("machine_disk_write_bytes", "bytes", "machine"),
    _cumulative("machine_disk_busy_ns", "ns", "machine"),
    _cumulative("net_received_bytes", "bytes", "machine"),
    _cumulative("net_sent_bytes", "bytes", "machine"),
    _cumulative("psi_cpu_some_us", "us", "machine"),
    _cumulative("psi_io_some_us", "us", "machine"),
    _cumulative("psi_io_full_us", "us", "machine"),
    _cumulative("psi_memory_some_us", "us", "machine"),
    _cumulative("cgroup_throttled_ns", "ns", "cgroup"),
    _cumulative("cgroup_throttled_periods", "count", "cgroup"),
)
SERIES: dict[str, SeriesInfo] = {info.name: info for info in _ALL}


def gpu_series(number: int) -> tuple[SeriesInfo, SeriesInfo]:
    """(busy fraction, memory) of one GPU."""
    return (
        SeriesInfo(f"gpu{number}_busy_fraction", "fraction", "gauge", "device"),
        SeriesInfo(f"gpu{number}_memory_bytes", "bytes", "gauge", "device"),
    )
