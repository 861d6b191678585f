"""Latencies of the kernel's CephFS client, from tables as several kernels write them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from jupyter_ioscope.storage import cephstats, filesystems
from jupyter_ioscope.views.sections import text_of
from jupyter_ioscope.views.storage import file_system_sections

# Kernel 6.1, metrics/latency.
NEW = """\
item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          1200        2500            310             88000           4100
write         0           0               0               0               0
metadata      90          700             120             5000            300
copyfrom      0           0               0               0               0
"""
# Kernel 5.8, one file: no spread, and another table behind.
OLD = """\
item          total       sum_lat(us)     avg_lat(us)
-----------------------------------------------------
read          10          30000           3000
write         2           8000            4000

item          total           miss            hit
-------------------------------------------------
d_lease       5               0               7
caps          9               1               3
"""
FSID = "11111111-2222-3333-4444-555555555555"


def test_a_new_kernels_table_gives_mean_worst_and_spread() -> None:
    read, metadata = cephstats.parse(NEW)
    assert (read.name, read.operations) == ("read", 1200)
    assert (read.mean_s, read.worst_s, read.deviation_s) == pytest.approx((0.0025, 0.088, 0.0041))
    assert metadata.name == "metadata"  # those that were never used are left out


def test_an_old_kernels_table_gives_means_and_no_other_table_is_taken_for_it() -> None:
    read, write = cephstats.parse(OLD)
    assert (read.name, read.operations, read.worst_s) == ("read", 10, -1.0)
    assert (write.name, write.operations, write.worst_s) == ("write", 2, -1.0)
    assert (read.mean_s, write.mean_s) == pytest.approx((0.003, 0.004))


@pytest.mark.parametrize(
    "text", ["", "item total", NEW[:60], NEW.replace("1200", "many"), "\0" * 9]
)
def test_malformed_tables_raise_nothing(text: str) -> None:
    assert all(row.name == "metadata" for row in cephstats.parse(text))


def client(folder: Path, name: str, text: str = NEW) -> None:
    (folder / name / "metrics").mkdir(parents=True)
    (folder / name / "metrics" / "latency").write_text(text)


def test_the_client_is_that_of_the_mounts_cluster(tmp_path: Path) -> None:
    folder = str(tmp_path)
    client(tmp_path, f"{FSID}.client42")
    assert len(cephstats.of_source("10.1.0.1,10.1.0.2:/", folder)[0]) == 2
    client(tmp_path, "99999999-2222-3333-4444-555555555555.client7", OLD)
    assert len(cephstats.of_source(f"admin@{FSID}.data=/sets", folder)[0]) == 2
    assert cephstats.of_source("10.1.0.1:/", folder) == (
        (), f"{folder} lists 2 clients, and the mount does not say which is its own",
    )  # fmt: skip


def test_old_kernels_keep_one_file_and_older_ones_none(tmp_path: Path) -> None:
    (tmp_path / "a.client1").mkdir()
    assert "from 5.8 on" in cephstats.of_source("m:/", str(tmp_path))[1]
    (tmp_path / "a.client1" / "metrics").write_text(OLD)
    assert len(cephstats.of_source("m:/", str(tmp_path))[0]) == 2


def test_a_mount_shows_its_counters_or_why_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "45 22 0:49 / /ceph rw,relatime - ceph 10.1.0.1:/ rw,name=admin,acl"
    monkeypatch.setattr(cephstats.of_source, "__defaults__", (str(tmp_path / "none"),))
    found = filesystems.of_path("/ceph/x", table, "")
    assert "cannot be read" in text_of("", file_system_sections(found))
    found = dataclasses.replace(found, ceph=cephstats.parse(OLD), no_counters="")
    text = text_of("", file_system_sections(found)).replace("\u00a0", " ")
    assert "CephFS requests since the mount" in text
    assert "3.0 ms" in text
