"""Loaders are profiled in processes of their own, which end at their deadline."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.accuracy.entries import HEALTHY, Entry, external
from tests.accuracy.judge import judged
from tests.accuracy.processes import environment
from tests.accuracy.record import record, result_of, severest_name

QUICK = """
import os
import time
from torch.utils.data import DataLoader
EPOCHS = 2
def prepare():
    assert not os.path.exists(os.path.join(os.environ["IOSCOPE_ACCURACY_DATA"], "broken"))
def make_loader():
    return DataLoader(range(60), batch_size=2)
def consume(batch):
    time.sleep(0.01)
"""


@pytest.mark.timeout(300)
def test_a_case_is_profiled_in_a_process_of_its_own_and_judged_from_the_file(
    tmp_path: Path,
) -> None:
    cases = tmp_path / "cases"
    for name, text in (("quick", QUICK), ("broken", BROKEN), ("hangs", HANGS)):
        (cases / name).mkdir(parents=True)
        (cases / name / "slow.py").write_text(text)
    labels = {"quick": [HEALTHY], "broken": ["decode_cpu"], "hangs": ["fork_deadlock"]}
    (cases / "labels.json").write_text(json.dumps(labels))
    kept = tmp_path / "kept"
    quick = [entry for entry in external(cases) if entry.name != "hangs/slow"]
    failed = record(quick, kept, deadline_s=60)
    assert [line for line in failed if "broken/slow" in line and "nowhere_at_all" in line] == failed
    assert failed
    (row,) = judged(kept)
    assert row.right(), list(row.causes)
    assert row.tier == "full"
    assert result_of(kept / "full" / "quick~slow")["batches"] == 60
    hanging = [entry for entry in external(cases) if entry.name == "hangs/slow"]
    assert "did not end within 2 s" in record(hanging, kept, deadline_s=2)[0]
    assert not list(kept.glob("*/*.new*"))


BROKEN = """
import os
os.mkdir(os.path.join(os.environ["IOSCOPE_ACCURACY_DATA"], "broken"))  # a case's data goes with it
import nowhere_at_all
"""
HANGS = "import time\ntime.sleep(600)"


@pytest.mark.timeout(300)
def test_a_loader_of_the_corpus_is_profiled_without_a_sampler_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    entry = Entry(
        "healthy/x", "healthy", "tests.accuracy.loaders_healthy:BatchesInMemory:", (HEALTHY,)
    )
    assert record([entry], tmp_path, "in_process", deadline_s=60) == []
    (row,) = judged(tmp_path)
    assert row.right()
    assert result_of(tmp_path / "in_process" / entry.file_name)["tier"] == "in_process"


def test_a_milder_run_without_the_severest_is_skipped_and_says_so(tmp_path: Path) -> None:
    entry = Entry("single/X/mild", "single", "m:X:mild", ("decode_cpu",), "mild", step=1.5)
    assert severest_name(entry) == "single~X~severe"
    assert record([entry], tmp_path) == []
    assert judged(tmp_path) == []


def test_only_the_tier_without_a_sampler_hides_proc(tmp_path: Path) -> None:
    assert "IOSCOPE_PROC" not in environment("full", tmp_path)
    assert not os.path.exists(environment("in_process", tmp_path)["IOSCOPE_PROC"])
