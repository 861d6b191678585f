"""The store that answers late: what the second tutorial fetches its samples from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
sys.path.insert(0, str(NOTEBOOKS))

import far_store  # noqa: E402

DELAY_S = 0.5  # far more than a busy machine needs for an answer


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=90) as answer:
        content: bytes = answer.read()
    return content


@pytest.mark.timeout(240)
def test_every_object_has_its_own_content_and_keeps_it() -> None:
    with far_store.start(delay_s=0) as store:
        first, second = fetch(f"{store.url}/1"), fetch(f"{store.url}/2")
        assert fetch(f"{store.url}/1") == first == far_store.content("1")
    assert first != second
    assert len(first) == len(second) == far_store.OBJECT_BYTES


@pytest.mark.timeout(240)
def test_no_answer_comes_early_and_requests_wait_at_the_same_time() -> None:
    with far_store.start(delay_s=DELAY_S) as store, ThreadPoolExecutor(20) as pool:
        started = time.monotonic()
        fetch(f"{store.url}/1")
        alone_s = time.monotonic() - started
        assert alone_s >= DELAY_S
        started = time.monotonic()
        list(pool.map(fetch, [f"{store.url}/{number}" for number in range(20)]))
        assert time.monotonic() - started < 20 * alone_s / 2


@pytest.mark.timeout(240)
def test_a_closed_store_answers_no_more_and_may_be_closed_again() -> None:
    store = far_store.start(delay_s=0)
    fetch(f"{store.url}/1")
    store.close()
    store.close()
    with pytest.raises(urllib.error.URLError):
        fetch(f"{store.url}/1")


@pytest.mark.timeout(240)
def test_it_ends_with_the_process_that_started_it() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(NOTEBOOKS)!r}); import far_store, os\n"
        "store = far_store.start(0); print(store.url, flush=True); os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    url, until = done.stdout.strip(), time.monotonic() + 20
    assert url.startswith("http://127.0.0.1:")
    while answers(url) and time.monotonic() < until:
        time.sleep(0.05)
    assert not answers(url)


def answers(url: str) -> bool:
    try:
        fetch(f"{url}/1")
    except OSError:
        return False
    return True


def test_a_store_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    if not os.path.exists("/bin/false"):
        pytest.skip("/bin/false is not there")
    with pytest.raises(RuntimeError, match="did not start"):
        far_store.start(delay_s=0)
