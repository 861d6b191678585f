"""Records cost little, however large a batch is."""

from __future__ import annotations

import pytest

from jupyter_ioscope.capture import records


def test_looking_at_batches_takes_at_most_a_hundredth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = looking_ns = 0

    def look(data: object) -> tuple[int, int]:
        nonlocal now_ns, looking_ns
        now_ns += 2_000_000
        looking_ns += 2_000_000
        return 5_000, 40_000

    monkeypatch.setattr(records, "batch_size_of", look)
    monkeypatch.setattr("jupyter_ioscope.capture.records.time.monotonic_ns", lambda: now_ns)
    size_of = records.SizeOfBatch()
    for _ in range(2_000):
        assert size_of([]) == (5_000, 40_000)
        now_ns += 350_000
    assert looking_ns > 2_000_000, "it is looked at again after a while"
    assert looking_ns - 2_000_000 <= 0.01 * now_ns
