"""Limits of containers, control groups and ulimits, read from machines made of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_ioscope.model.observed import ProcessUse
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.model.storage import Limit, Limits
from jupyter_ioscope.storage.cgroups import Groups
from jupyter_ioscope.storage.limits import Machine, limits
from jupyter_ioscope.views.limits import limits_html, limits_text
from tests import builders

V2_MOUNTS = "30 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
V1_MOUNTS = "".join(
    f"3{n} 22 0:3{n} {root} /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n"
    for n, (name, root) in enumerate(
        (("cpu,cpuacct", "/docker/abc"), ("memory", "/docker/abc"), ("blkio", "/docker/abc"))
    )
)
GB = 10**9


def machine(
    root: Path,
    files: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
    cores: int = 8,
    all_cores: int = 8,
    shm: tuple[int, int] = (8 * GB, 8 * GB),
    ulimits: Mapping[str, int] | None = None,
) -> Machine:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine(
        Groups(str(root)),
        environment or {},
        set(range(cores)),
        all_cores,
        shm,
        {"nofile": 65536} if ulimits is None else ulimits,
    )


def row(found: Limits, name: str) -> Limit:
    return next(limit for limit in found.limits if limit.name == name)


def kubernetes(root: Path) -> Machine:
    """Version 2, in a pod: the mount shows the group itself, the limit of CPU is in the parent."""
    group = "sys/fs/cgroup/kubepods/pod1"
    return machine(
        root,
        {
            "proc/self/mountinfo": V2_MOUNTS,
            "proc/self/cgroup": "0::/kubepods/pod1/box\n",
            f"{group}/cpu.max": "250000 100000\n",
            f"{group}/box/cpu.max": "max 100000\n",
            f"{group}/box/cpu.stat": "usage_usec 5\nnr_periods 1000\nnr_throttled 300\n"
            "throttled_usec 12000000\n",
            f"{group}/box/memory.max": "4000000000\n",
            f"{group}/box/memory.current": "3900000000\n",
            f"{group}/box/memory.events": "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\n",
            f"{group}/box/io.max": "8:0 rbps=20000000 wbps=max riops=500 wiops=max\n",
            f"{group}/box/io.weight": "default 50\n",
            f"{group}/box/pids.max": "100\n",
        },
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        shm=(64 << 20, 60 << 20),
        ulimits={"nofile": 1024, "as": -1, "nproc": 4096},
    )


def test_version_2_in_kubernetes_is_read_from_the_group_and_those_above(tmp_path: Path) -> None:
    found = limits(machine=kubernetes(tmp_path))
    assert found.place == "Kubernetes"
    assert found.cores == 2.5
    assert row(found, "CPU quota").value == 2.5
    assert (row(found, "throttled by the quota").value, found.workers) == (0.3, 2)
    assert row(found, "throttled by the quota").state == "hit"
    assert row(found, "memory").value == 4e9
    assert row(found, "memory").state == "tight"
    assert row(found, "killed for memory").value == 2
    assert row(found, "read bytes of device 8:0").value == 20e6
    assert row(found, "read requests of device 8:0").value == 500
    assert row(found, "I/O weight").value == 50
    assert row(found, "processes and threads").state == "tight"
    assert row(found, "/dev/shm").state == "tight"
    assert row(found, "open files").state == "tight"
    assert {limit.name for limit in found.limits} & {"address space"} == set()


def test_advice_follows_what_is_limited(tmp_path: Path) -> None:
    told = "\n".join(limits(machine=kubernetes(tmp_path)).advice)
    for words in ("30 %", "killed", "num_workers=2", "os.cpu_count()", "OMP_NUM_THREADS", "shm",
                  "ulimit -n", "device is limited"):  # fmt: skip
        assert words in told.replace("\u00a0", " "), words


def test_snippets_are_those_of_the_place_and_ask_for_its_cores(tmp_path: Path) -> None:
    found = limits(machine=kubernetes(tmp_path))
    (snippet,) = found.snippets
    assert snippet.place == "Kubernetes"
    assert "/dev/shm" in snippet.code
    assert 'cpu: "2.5"' in snippet.code


def test_a_snippet_says_where_each_number_comes_from_and_names_what_is_not_known(
    tmp_path: Path,
) -> None:
    plain = machine(tmp_path / "plain", {}, cores=2, all_cores=2)
    code = "\n".join(snippet.code for snippet in limits(machine=plain).snippets)
    for words in ("--cpus=2 ", "may be used here (affinity)", "--memory=MEMORY", "--shm-size=SHM",
                  "memory: MEMORY", "sizeLimit: SHM", "peak memory of a report"):  # fmt: skip
        assert words in code, words
    assert "nofile" not in code  # nothing is tight: nothing is asked for
    (limited,) = limits(machine=kubernetes(tmp_path / "pod")).snippets
    assert "memory: 4000000000}" in limited.code
    assert "the limit of now, which is nearly used up" in limited.code
    known = "\n".join(row.code for row in limits(with_memory(), plain).snippets)
    for words in ("--memory=2g", "held 1.20 GB at their peak", "4 batches of 1.20 MB",
                  "--shm-size=64m"):  # fmt: skip
        assert words in known, words


def test_each_place_writes_memory_in_its_own_unit(tmp_path: Path) -> None:
    here = kubernetes(tmp_path)
    slurm = here._replace(environment={"SLURM_JOB_ID": "7"})
    (snippet,) = [row for row in limits(machine=slurm).snippets if row.place == "Slurm"]
    assert "--mem=3815M" in snippet.code  # 4 GB in units of 2**20, which is what M means there
    assert "memory: 4000000000}" in limits(machine=here).snippets[0].code


def with_memory() -> Profile:
    """Two workers; all processes together held 1.2 GB at their peak."""
    held = Series("tree_pss_bytes", "bytes", "gauge", "tree", (0, 10**9), (1e9, 1.2e9))
    return builders.without(builders.profile(), series=MappingProxyType({held.name: held}))


@pytest.mark.parametrize(("step_ms", "ranks", "workers"), [(1.0, 1, 4), (1.0, 2, 2), (400.0, 1, 3)])
def test_workers_get_the_cores_that_ranks_and_the_loop_leave(
    tmp_path: Path, step_ms: float, ranks: int, workers: int
) -> None:
    here = machine(tmp_path, {}, cores=4, all_cores=4)
    found = limits(builders.profile(step_ms=step_ms), here, ranks)
    assert found.workers == workers
    assert f"num_workers={workers}," in "\n".join(found.advice)


def test_a_loader_of_every_epoch_is_told_once(tmp_path: Path) -> None:
    profile = builders.profile()
    again = builders.without(profile, loaders=profile.loaders * 3)
    advice = limits(again, machine(tmp_path, {})).advice
    assert advice == limits(profile, machine(tmp_path, {})).advice
    assert len(set(advice)) == len(advice)


def test_workers_follow_the_memory_that_is_left(tmp_path: Path) -> None:
    use = ProcessUse(1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 10**9, 10, 1_000)
    held = builders.without(builders.profile(), processes=(use,))
    here = machine(tmp_path, {}, cores=4, all_cores=4)._replace(memory=(8 * GB, 2 * GB))
    found = limits(held, here)
    assert found.workers == 2
    assert "num_workers=2, as many as fit into the memory that is left" in "\n".join(found.advice)
    assert limits(held, here._replace(memory=(8 * GB, 7 * GB))).workers == 4


@pytest.mark.parametrize(("cached", "state", "workers"), [(0, "tight", 1), (3, "ok", 4)])
def test_cached_files_leave_room_for_workers(
    tmp_path: Path, cached: int, state: str, workers: int
) -> None:
    use = ProcessUse(1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, GB // 2, 10, 1_000)
    held = builders.without(builders.profile(), processes=(use,))
    group = "sys/fs/cgroup"
    files = {
        "proc/self/mountinfo": V2_MOUNTS, "proc/self/cgroup": "0::/\n",
        f"{group}/memory.max": f"{4 * GB}\n", f"{group}/memory.current": f"{39 * GB // 10}\n",
        f"{group}/memory.stat": f"anon 1\nactive_file {cached * GB}\ninactive_file 5\n",
    }  # fmt: skip
    found = limits(held, machine(tmp_path, files, cores=4, all_cores=4))
    assert (row(found, "memory").state, found.workers) == (state, workers)


def test_the_group_with_the_least_room_counts(tmp_path: Path) -> None:
    files = {
        "proc/self/mountinfo": V2_MOUNTS, "proc/self/cgroup": "0::/pod/box\n",
        "sys/fs/cgroup/pod/memory.max": f"{8 * GB}\n",
        "sys/fs/cgroup/pod/memory.current": f"{7 * GB}\n",  # other boxes of the pod
        "sys/fs/cgroup/pod/box/memory.max": f"{4 * GB}\n",
        "sys/fs/cgroup/pod/box/memory.current": f"{GB}\n",
    }  # fmt: skip
    found = machine(tmp_path, files).groups.memory()
    assert found is not None
    assert (found.limit_bytes, found.left_bytes) == (8 * GB, GB)


def test_version_1_in_docker_is_read_although_the_path_is_the_hosts(tmp_path: Path) -> None:
    here = machine(
        tmp_path,
        {
            ".dockerenv": "",
            "proc/self/mountinfo": V1_MOUNTS,
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n"
            "3:blkio:/docker/abc\n0::/docker/abc\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 100\nnr_throttled 1\n"
            "throttled_time 500000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "100000000\n",
            "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device": "254:0 20000000\n",
        },
    )
    found = limits(machine=here)
    assert here.groups.version == "1"
    assert (found.place, found.cores) == ("Docker", 1.5)
    assert row(found, "throttled by the quota").state == "ok"
    assert row(found, "memory").state == "ok"
    assert row(found, "read bytes of device 254:0").value == 20e6
    assert [snippet.place for snippet in found.snippets] == ["Docker"]
    assert "--cpus=1.5 --memory=2000000000b " in found.snippets[0].code


def test_a_group_without_limits_limits_nothing(tmp_path: Path) -> None:
    here = machine(
        tmp_path,
        {
            "proc/self/mountinfo": V1_MOUNTS + V2_MOUNTS.replace("/sys/fs/cgroup", "/u"),
            "proc/self/cgroup": "4:memory:/x\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "u/memory.max": "max\n",
            "u/cpu.max": "max 100000\n",
            "u/io.weight": "default 100\n",
        },
    )
    found = limits(machine=here)
    assert here.groups.version == "1 and 2"
    assert found.place == "plain"
    assert found.cores == 8
    assert {limit.name for limit in found.limits} == {"affinity", "/dev/shm", "open files"}
    assert {limit.state for limit in found.limits} == {"ok"}


def test_slurm_gives_fewer_cores_than_the_node_has(tmp_path: Path) -> None:
    nodes = {f"sys/devices/system/node/node{n}/cpulist": f"{4 * n}-{4 * n + 3}\n" for n in (0, 1)}
    here = machine(
        tmp_path,
        nodes,
        {
            "SLURM_JOB_ID": "77",
            "SLURM_CPUS_PER_TASK": "4",
            "SLURM_MEM_PER_CPU": "2048",
            "SLURM_CPUS_ON_NODE": "6",
        },
        cores=6,
        all_cores=64,
    )
    found = limits(machine=here)
    assert (found.place, found.cores, found.workers) == ("Slurm", 4, 4)
    assert "4 cores on node0, 2 cores on node1" in row(found, "NUMA nodes").text
    assert any("numactl --cpunodebind=0 --membind=0" in text for text in found.advice)
    assert row(found, "memory of the Slurm job").value == 12 << 30
    assert [snippet.place for snippet in found.snippets] == ["Slurm"]
    assert found.not_known  # no control groups here


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "nonsense\n::\n0\n", "proc/self/mountinfo": V2_MOUNTS},
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": V2_MOUNTS,
            "sys/fs/cgroup/cpu.max": "x y z\n",
            "sys/fs/cgroup/cpu.stat": "nr_periods many\n\n",
            "sys/fs/cgroup/io.max": "8:0\n\n8:1 rbps\n",
            "sys/fs/cgroup/memory.max": "\n",
        },
        {"proc/self/cgroup": "0::/../../other\n", "proc/self/mountinfo": V2_MOUNTS},
    ],
)
def test_malformed_files_limit_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    found = limits(machine=machine(tmp_path, files))
    assert {limit.state for limit in found.limits} == {"ok"}


def test_a_profile_adds_its_workers_and_batches(tmp_path: Path) -> None:
    found = limits(builders.profile(), kubernetes(tmp_path))
    assert any("/dev/shm" in text and "batches of" in text for text in found.advice)


def test_this_machine_has_cores_and_workers() -> None:
    found = limits()
    assert found.cores > 0
    assert found.workers >= 1


def test_the_views_name_each_limit_and_escape(tmp_path: Path) -> None:
    found = limits(machine=kubernetes(tmp_path))
    text = limits_text(found)
    assert all(limit.name in text for limit in found.limits)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("Kubernetes: 2.5 cores")
    evil = found.limits[0]._replace(name="<script>x</script>")
    html = limits_html(Limits("<b>", (), 1, 1, (evil,), ("<i>",), ()))
    assert "<script" not in html
    assert "<i>" not in html
