"""The GPU probe with a library that speaks NVML, compiled here: the real path without a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = str(Path(__file__).resolve().parent.parent)

# Enough of nvml.h for nvidia-ml-py; the answers are read again from a file at every call.
STUB = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long field(const char *name) {
    char path[4096], key[64]; long value, found = -1;
    snprintf(path, sizeof path, "%s", getenv("FAKE_NVML") ? getenv("FAKE_NVML") : "");
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    while (fscanf(file, "%63s %ld", key, &value) == 2) if (!strcmp(key, name)) found = value;
    fclose(file);
    return found;
}
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
enum { NOT_SUPPORTED = 3, UNKNOWN = 999, DRIVER_NOT_LOADED = 9 };
int nvmlInitWithFlags(unsigned flags) { return field("init") > 0 ? field("init") : 0; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) {
    return code == NOT_SUPPORTED ? "Not Supported" : code == DRIVER_NOT_LOADED
        ? "Driver Not Loaded" : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned *count) { *count = field("count"); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(long)(index + 1); return 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    snprintf(name, length, "Fake GPU %ld", (long)device - 1); return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    long busy = field((long)device == 1 ? "busy0" : "busy1");
    if (busy < 0) return NOT_SUPPORTED;
    rates->gpu = busy; rates->memory = 0; return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_info *memory) {
    long used = field("used");
    if (used < 0) return NOT_SUPPORTED;
    memory->total = 1000; memory->used = used; memory->free = 1000 - used; return 0;
}
"""
READ_TWICE = """
import json, os, sys
from jupyter_ioscope.capture.gauges import Gauges
from jupyter_ioscope.capture.probes import gpu
class Here:
    proc, sys, pid = "/proc", "/sys", os.getpid()
    def pids(self): return [self.pid]
gauges = Gauges([gpu.PROBE], Here())
gauges.finish_opening()
gauges.read(everything=True)
for text in sys.argv[1:]:
    open(os.environ["FAKE_NVML"], "w").write(text)
    gauges.read(everything=True)
print(json.dumps({
    "series": {item.info.name: list(item.values) for item in gauges.series()},
    "gaps": gauges.gaps(), "gpus": gauges.gpus(),
}))
gauges.close()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the fake NVML with")
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(STUB)
    target = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(target), str(folder / "nvml.c")], check=True
    )
    return folder


def _read(library: Path, tmp_path: Path, *states: str) -> Any:
    state = tmp_path / "state"
    state.write_text(states[0])
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "FAKE_NVML": str(state),
        "PYTHONPATH": ROOT,
    }
    command = [sys.executable, "-c", READ_TWICE, *states[1:]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(240)
def test_utilisation_and_memory_are_read_again_at_every_beat(library: Path, tmp_path: Path) -> None:
    seen = _read(
        library,
        tmp_path,
        "count 2\nbusy0 40\nbusy1 7\nused 250\n",
        "count 2\nbusy0 90\nbusy1 0\nused 300\n",
    )
    assert seen["gpus"] == ["Fake GPU 0", "Fake GPU 1"]
    assert seen["series"] == {
        "gpu0_busy_fraction": [0.4, 0.9],
        "gpu0_memory_bytes": [250, 300],
        "gpu1_busy_fraction": [0.07, 0.0],
        "gpu1_memory_bytes": [250, 300],
    }
    assert seen["gaps"] == []


@pytest.mark.timeout(240)
def test_each_unsupported_field_is_a_gap_of_its_own(library: Path, tmp_path: Path) -> None:
    seen = _read(library, tmp_path, "count 1\nused 250\n")
    assert seen["series"] == {"gpu0_memory_bytes": [250]}
    assert seen["gaps"] == [["utilisation of GPU 0", "NVML: Not Supported"]]
    assert seen["gpus"] == ["Fake GPU 0"]


@pytest.mark.timeout(240)
def test_a_field_that_fails_later_leaves_a_hole_and_nothing_else(
    library: Path, tmp_path: Path
) -> None:
    seen = _read(library, tmp_path, "count 1\nbusy0 5\nused 1\n", "count 1\nused 2\n")
    assert seen["series"] == {"gpu0_busy_fraction": [0.05], "gpu0_memory_bytes": [1, 2]}


@pytest.mark.timeout(240)
def test_a_driver_that_is_not_loaded_is_the_reason(library: Path, tmp_path: Path) -> None:
    seen = _read(library, tmp_path, "init 9\n")
    assert seen["series"] == {}
    assert seen["gaps"] == [["GPU utilisation and memory", "NVML: Driver Not Loaded"]]
