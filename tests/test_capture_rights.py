"""What one process may see of another is found by trying, without disturbing it."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_ioscope.capture import rights

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
ROOT = str(Path(__file__).resolve().parent.parent)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    code = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def without_right(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process whose own children may not look at it."""
    command = [sys.executable, "-c", _REFUSE + code]
    if os.geteuid() == 0:
        capsh = shutil.which("capsh")
        if capsh is None:
            pytest.skip("running as root without capsh: the right cannot be given up")
        command = [capsh, "--drop=cap_sys_ptrace", "--", "-c", 'exec "$0" "$@"', *command]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)


# PR_SET_DUMPABLE = 4: from then on only CAP_SYS_PTRACE may look.
_REFUSE = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"


@pytest.mark.timeout(180)
def test_a_child_may_be_looked_at_and_is_not_disturbed(child: subprocess.Popen[bytes]) -> None:
    if rights.yama_level() not in (None, 0):
        pytest.skip("Yama is on")
    assert child.stdin is not None
    assert child.stdout is not None
    for _ in range(20):
        assert rights.may_read_memory(child.pid) == 0
        assert rights.may_trace(child.pid) == 0
    assert "TracerPid:\t0" in _state(child.pid)
    child.stdin.write(b"abc\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"cba\n"
    assert child.poll() is None
    assert rights.sees_calls("/proc", child.pid)


@pytest.mark.timeout(180)
def test_a_process_that_is_gone_is_said_to_be_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    error = rights.may_read_memory(process.pid)
    assert error == errno.ESRCH
    assert "gone" in rights.why_refused(process.pid, error, None)


@pytest.mark.timeout(240)
def test_a_refusal_is_found_and_explained() -> None:
    done = without_right(
        "import os, subprocess, sys\n"
        "code = 'import os; from jupyter_ioscope.capture import rights as r; p = os.getppid();'"
        "'print(r.may_read_memory(p), r.may_trace(p), r.sees_calls(\"/proc\", p),'"
        "'r.why_refused(p, 1, None))'\n"
        "subprocess.run([sys.executable, '-c', code])\n"
    )
    memory, trace, calls, reason = done.stdout.split(" ", 3)
    assert (memory, trace, calls) == (str(errno.EPERM), str(errno.EPERM), "False"), done
    assert "lacks the right" in reason


def test_yamas_levels_are_read_and_explained(tmp_path: Path) -> None:
    assert rights.yama_level(str(tmp_path)) is None
    folder = tmp_path / "sys/kernel/yama"
    folder.mkdir(parents=True)
    (folder / "ptrace_scope").write_text("2\n")
    assert rights.yama_level(str(tmp_path)) == 2
    assert "ptrace_scope is 2" in rights.why_refused(os.getpid(), errno.EPERM, 2)
    assert "ptrace_scope is 3" in rights.why_refused(os.getpid(), errno.EPERM, 3)


def test_allowing_a_tracer_is_harmless_without_yama() -> None:
    allowed = rights.allow_tracer(os.getppid())
    assert allowed == (rights.yama_level() is not None)
    rights.allow_tracer(0)
