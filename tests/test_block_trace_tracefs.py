"""Private trace instances: made where it is allowed, said why not elsewhere, always removed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from jupyter_ioscope.block_trace import tracefs
from tests.io_causes import tracefs as private

DEAD = "ioscope-1-999"  # process 1 began at another time


def fake(root: Path, *instances: str) -> str:
    """The folders of a tracefs; `proc` beside it has no mounts."""
    folder = root / "sys/kernel/tracing"
    (folder / "events/block").mkdir(parents=True)
    for name in ("", *instances):
        (folder / "instances" / name).mkdir(parents=True, exist_ok=True)
    (root / "proc/self").mkdir(parents=True)
    return str(folder)


def found(root: Path) -> str:
    return tracefs.find(str(root / "proc"), str(root / "sys"))


def test_the_usual_place_is_found_first(tmp_path: Path) -> None:
    assert fake(tmp_path) == found(tmp_path)


def test_a_tracefs_elsewhere_is_found_by_the_list_of_mounts(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    (place / "events/block").mkdir(parents=True)
    (place / "instances").mkdir()
    (tmp_path / "proc/self").mkdir(parents=True)
    points = ("/proc proc", "/with\\040blank tracefs", f"{place} tracefs")
    lines = [f"none {point} rw 0 0\n" for point in points]
    (tmp_path / "proc/self/mounts").write_text("".join(lines))
    assert found(tmp_path) == str(place)


def test_where_none_is_mounted_the_reason_says_whom_to_ask(tmp_path: Path) -> None:
    with pytest.raises(tracefs.NotHereError, match=r"not mounted here; ask .*mount -t tracefs"):
        found(tmp_path)


def test_a_kernel_without_the_events_is_said_to_lack_them(tmp_path: Path) -> None:
    os.rmdir(Path(fake(tmp_path)) / "events/block")
    with pytest.raises(tracefs.NotHereError, match="no trace events"):
        found(tmp_path)


def test_an_instance_that_the_kernel_refuses_leaves_nothing(tmp_path: Path) -> None:
    # In ordinary folders there are no files to set up a trace with.
    folder = fake(tmp_path)
    with pytest.raises(tracefs.NotHereError, match="may not be read and written"):
        tracefs.Instance(folder)
    assert os.listdir(f"{folder}/instances") == []


def test_only_instances_of_processes_that_are_gone_are_left_over(tmp_path: Path) -> None:
    mine = f"ioscope-{os.getpid()}-{tracefs._started('/proc', os.getpid())}"
    folder = fake(tmp_path, mine, DEAD, "ioscope-999999999-1", "somebody-else", "ioscope-x")
    tracefs.remove_left_over(folder)
    assert sorted(os.listdir(f"{folder}/instances")) == sorted([mine, "ioscope-x", "somebody-else"])


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    if reason := private.why_not(tmp_path):
        pytest.skip(reason)
    return tmp_path


KILLED = """
import os, subprocess, sys
from jupyter_ioscope.block_trace import tracefs
code = (
    "import sys, time; from jupyter_ioscope.block_trace import tracefs;"
    "one = tracefs.Instance(sys.argv[1]); print(one.clock, flush=True); time.sleep(60)"
)
mine = tracefs.Instance(folder)
with subprocess.Popen([sys.executable, "-c", code, folder], stdout=-1, text=True) as other:
    clock = other.stdout.readline().strip()
    pid = other.pid
    tracefs.remove_left_over(folder)
    alive = [name for name in os.listdir(folder + "/instances") if name.startswith("ioscope-")]
    other.kill()
left = os.path.exists(f"{folder}/instances/{[n for n in alive if f'-{pid}-' in n][0]}")
tracefs.remove_left_over(folder)
names = os.listdir(folder + "/instances")
print(json.dumps({
    "clock": clock, "both": len([n for n in alive if f"-{pid}-" in n or n in mine.path]),
    "left": left, "removed": not any(f"-{pid}-" in name for name in names),
    "mine": os.path.basename(mine.path) in names,
}))
mine.close()
assert os.path.basename(mine.path) not in os.listdir(folder + "/instances")
mine.close()
"""


@pytest.mark.timeout(120)
def test_the_next_start_removes_what_a_killed_process_left(mount: Path) -> None:
    done = private.run(mount, f"import json; folder = {str(mount)!r}\n{KILLED}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "clock": "mono",
        "both": 2,
        "left": True,
        "removed": True,
        "mine": True,
    }


REFUSED = """
import os
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
try:
    tracefs.Instance(tracefs.find(sys_root="/nowhere"))
except tracefs.NotHereError as error:
    print(error)
"""


@pytest.mark.timeout(60)
def test_a_user_without_rights_is_told_what_it_takes() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # not this folder, the mount in it shall refuse
        if reason := private.why_not(Path(place)):
            pytest.skip(reason)
        code = f"from jupyter_ioscope.block_trace import tracefs\n{REFUSED}"
        done = private.run(Path(place), code)
    assert done.returncode == 0, done.stderr
    assert "may not be read and written by this user (Permission denied)" in done.stdout
    assert "it takes root" in done.stdout
