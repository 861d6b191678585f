"""The arithmetic of the measuring scripts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bench import run
from tests.bench.measure import at_most_interval, cpu_s, ratio_interval
from tests.bench.merge import merged, sections
from tests.bench.row import judged
from tests.bench.table import page


def test_a_known_ratio_lies_inside_its_interval() -> None:
    rng = random.Random(1)
    drifts = [rng.uniform(0.5, 2) for _ in range(60)]
    pairs = [(drift, 1.1 * drift * rng.gauss(1, 0.05)) for drift in drifts]
    result = ratio_interval(pairs)
    assert result.low < 1.1 < result.high
    assert result.high - result.low < 0.06  # the drift that both share is gone


def test_intervals_cover_the_truth_about_as_often_as_they_promise() -> None:
    rng = random.Random(2)
    covered = 0
    for trial in range(100):
        pairs = [(1.0, rng.lognormvariate(0.0, 0.1)) for _ in range(20)]
        low, high = ratio_interval(pairs, seed=trial)[1:]
        covered += low <= 1.0 <= high
    assert 88 <= covered <= 100


def test_no_event_in_twenty_tries_does_not_mean_never() -> None:
    # Wilson's upper limit for 0 of 20 is z^2 / (n + z^2)
    assert at_most_interval(0, 20).high == pytest.approx(1.96**2 / (20 + 1.96**2))
    assert at_most_interval(20, 20).low > 0.8


@pytest.mark.timeout(120)
def test_cpu_of_waited_children_counts_and_sleep_does_not() -> None:
    before = cpu_s()
    subprocess.run([sys.executable, "-c", "sum(i * i for i in range(2_000_000))"], check=True)
    after_child = cpu_s()
    time.sleep(0.2)
    assert after_child - before > 0.02
    assert cpu_s() - after_child < 0.1


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (0.01, 0.0, 0.02, "met"),
        (0.01, 0.0, 0.04, "met, within doubt"),
        (0.04, 0.02, 0.05, "not met, within doubt"),
        (0.06, 0.04, 0.08, "not met"),
    ],
)
def test_a_goal_inside_the_interval_is_called_doubtful(
    value: float, low: float, high: float, word: str
) -> None:
    assert judged(value, low, high, goal=0.03) == word


def test_the_page_holds_only_what_was_measured_and_names_the_machine() -> None:
    measured = {"import_ms": 41.6, "bare_ms": 20.0, "loads": [], "machine": "a box of 3 cores"}
    text = page({"import_time": measured | {"quick": False, "date": "2030-01-02"}})
    assert "| `import ioscope` | 42 ms |  | at most 100 ms | met |" in text
    assert "a box of 3 cores; 2030-01-02." in text
    assert "Slow-down" not in text


def measured(import_ms: float, machine: str, date: str) -> dict[str, Any]:
    return {"import_ms": import_ms, "bare_ms": 20.0, "loads": [], "machine": machine,
            "quick": False, "date": date}  # fmt: skip


def test_a_new_section_loses_no_other_whoever_measured_it() -> None:
    other = (
        "## Live panel, an idle kernel with two workers\n\n| 0.1 % |\n\na far box; 2030-01-01.\n"
    )
    foreign = "## A section that no script makes any more\n\nits rows\n"
    old = page({"import_time": measured(41.6, "mine", "2030-01-01")})
    text = merged(
        {"import_time": measured(77.0, "mine", "2030-02-02 10:00 UTC")},
        "import_time",
        f"{old}\n{foreign}\n{other}",
    )
    assert "77 ms" in text
    assert "42 ms" not in text
    assert other in text
    assert foreign in text
    assert text.index("## Import") < text.index("## Live panel") < text.index("## A section")


def test_a_section_from_elsewhere_is_not_replaced_by_an_older_result_of_this_machine() -> None:
    newer = page({"import_time": measured(50.0, "far", "2030-03-03 10:00 UTC")})
    results = {"import_time": measured(99.0, "mine", "2030-01-01 10:00 UTC")}
    assert "50 ms" in merged(results, "helpers", newer)
    assert "99 ms" not in merged(results, "helpers", newer)
    assert "99 ms" in merged(results, "helpers", "")


def test_the_page_of_this_project_loses_nothing_when_one_section_is_measured_again() -> None:
    old = run.TABLE.read_text(encoding="utf-8")
    result = measured(20.0, "mine", "2030-01-01 10:00 UTC")
    new = merged({"import_time": result}, "import_time", old)
    assert sections(new).keys() == sections(old).keys()
    assert sections(new) | {"Import": ""} == sections(old) | {"Import": ""}


def test_results_are_kept_one_by_one_and_damaged_ones_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "kept" / "measurements.json")
    monkeypatch.setattr(run, "TABLE", tmp_path / "measurements.md")
    one = {"import_ms": 41.0, "bare_ms": 20.0, "loads": [], "machine": "mine", "quick": True}
    run.keep("import_time", dict(one))
    run.RESULTS.write_text(json.dumps(json.loads(run.RESULTS.read_text()) | {"x": {"kept": 1}}))
    run.keep("import_time", one | {"import_ms": 43.0})
    assert json.loads(run.RESULTS.read_text()).keys() == {"import_time", "x"}
    assert "43 ms" in run.TABLE.read_text(encoding="utf-8")
    run.RESULTS.write_text("{")
    run.keep("import_time", one | {"import_ms": 45.0})
    assert run.RESULTS.with_suffix(".damaged").read_text() == "{"
    assert "45 ms" in run.TABLE.read_text(encoding="utf-8")
