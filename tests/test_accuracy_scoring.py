"""The figures of `make accuracy`, from verdicts whose figures are known."""

from __future__ import annotations

import ast
import dataclasses
import json
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

pytest.importorskip("torch")

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.readings import Series
from tests import builders
from tests.accuracy import baselines
from tests.accuracy.__main__ import in_every_tier
from tests.accuracy.coarse import CONSUMER, CPU, IO, RESOURCE_OF
from tests.accuracy.corpus import NOT_REBUILT, own, written_blind
from tests.accuracy.entries import HEALTHY, Entry, external
from tests.accuracy.judge import LEAST_COST, Verdict, cost_of_trouble, lines
from tests.accuracy.page import page, severities
from tests.accuracy.scoring import (
    NOTHING,
    Rate,
    by_cause,
    coarse,
    confusion,
    known_shares,
    scores,
)

SILENT: tuple[tuple[str, baselines.Said], ...] = ()


def verdict(
    *causes: str,
    true: tuple[str, ...] = ("decode_cpu",),
    group: str = "single",
    separated: bool = True,
    advice: str = "",
    entry: Entry | None = None,
    said: tuple[tuple[str, baselines.Said], ...] = SILENT,
    shares: tuple[tuple[float, float, float], ...] = (),
) -> Verdict:
    return Verdict(
        entry=entry or Entry("a name", group, "", true),
        tier="full",
        causes=causes,
        resources=("worker_cpu",) * len(causes),
        shares=shares or ((0.5, 0.4, 0.6),) * len(causes),
        separated=separated,
        headline="",
        advice=advice,
        toggles=(),
        evidence=(),
        broken=(),
        baselines=said,
        recorded="",
    )


def test_the_first_finding_counts_and_the_second_only_among_two() -> None:
    made = scores(
        [
            verdict("decode_cpu", "disk_latency"),
            verdict("disk_latency", "decode_cpu"),
            verdict("disk_latency", "gc_pauses", "decode_cpu"),
            verdict("slow_collate", true=("decode_cpu", "slow_collate")),
        ]
    )
    assert made.first == Rate(2, 4)
    assert made.first_two == Rate(3, 4)
    assert made.alarms.interval is None


def test_nothing_found_and_two_that_cannot_be_told_apart_are_abstentions() -> None:
    made = scores([verdict(), verdict("decode_cpu", "gc_pauses", separated=False), verdict("x")])
    assert made.abstained == Rate(2, 3)
    assert made.first == Rate(1, 3)


def test_a_healthy_loader_may_have_no_finding_or_its_step_as_the_first() -> None:
    sound = {"true": (HEALTHY,), "group": "healthy"}
    rows = [verdict(**sound), verdict(HEALTHY, **sound), verdict("decode_cpu", HEALTHY, **sound)]  # type: ignore[arg-type]
    made = scores(rows)
    assert made.alarms == Rate(1, 3)
    assert made.first.tries == 0


def test_a_repaired_case_is_worse_when_the_repaired_cause_is_named_again() -> None:
    repaired = Entry("x", "case fixed", "", (HEALTHY,), gone=("slow_collate",))
    made = scores([verdict(name, entry=repaired) for name in ("slow_collate", "decode_cpu")])
    assert made.repaired_named == made.repaired_other == Rate(1, 2)
    assert made.alarms.tries == 0


def test_advice_is_right_when_it_names_the_change_and_unknown_where_nobody_says() -> None:
    told = Entry("x", "single", "", ("decode_cpu",), advice=("num_workers",))
    rows = [
        verdict("decode_cpu", advice="Use NUM_WORKERS=2.", entry=told),
        verdict("decode_cpu", advice="Buy a faster disk.", entry=told),
        verdict("decode_cpu", advice="Use num_workers=2."),
    ]
    assert scores(rows).advised == Rate(1, 2)


def test_skipped_runs_count_nowhere() -> None:
    row = dataclasses.replace(verdict("decode_cpu"), skipped="no such device")
    assert scores([row]).first.tries == 0
    assert not by_cause([row])
    assert not confusion([row])
    assert "no such device" in "".join(lines([row]))


def test_the_matrix_counts_what_was_taken_for_what() -> None:
    either = ("no_workers_cpu_bound", "decode_cpu")
    counted = confusion(
        [
            verdict("gc_pauses"),
            verdict(),
            verdict("decode_cpu", true=either),
            verdict("gc_pauses", true=(HEALTHY,), group="healthy"),
            verdict(true=(HEALTHY,), group="healthy"),
        ]
    )
    assert counted["decode_cpu", "gc_pauses"] == 1
    assert counted["decode_cpu", NOTHING] == 1
    assert counted["no_workers_cpu_bound", "no_workers_cpu_bound"] == 1
    assert counted[HEALTHY, "gc_pauses"] == counted[HEALTHY, HEALTHY] == 1


def test_each_cause_tells_what_was_said_instead() -> None:
    (row,) = by_cause(
        [verdict("gc_pauses"), verdict("gc_pauses"), verdict(), verdict("decode_cpu")]
    )
    assert row.label == "decode_cpu"
    assert row.first == Rate(1, 4)
    assert row.instead == (("gc_pauses", 2), (NOTHING, 1))


def test_known_shares_are_compared_with_reported_ones_and_their_intervals() -> None:
    shares = (("no_workers_cpu_bound", 0.6), ("no_workers_latency_bound", 0.3))
    entry = Entry("x", "mixed", "", ("no_workers_cpu_bound",), shares=shares)
    rows = known_shares([verdict("decode_cpu", shares=((0.5, 0.3, 0.7),), entry=entry)])
    assert [(row.found, row.inside) for row in rows] == [(0.5, True), (0.0, False)]


def test_tools_are_scored_on_what_they_say_and_no_more() -> None:
    says = (("a tool", baselines.Said(True, CPU)), ("another", baselines.Said(None)))
    rows = [
        verdict("disk_latency", true=("disk_latency",), said=says),
        verdict("decode_cpu", said=says),
        verdict(true=(HEALTHY,), group="healthy", said=says),
    ]
    made = coarse(rows)
    assert made["ioscope"].loader == Rate(2, 2)
    assert made["ioscope"].consumer == Rate(1, 1)
    assert made["ioscope"].resource == Rate(3, 3)
    assert made["a tool"].loader == Rate(2, 2)
    assert made["a tool"].consumer == Rate(0, 1)
    assert made["a tool"].resource == Rate(1, 3)
    assert made["another"].silent == 3
    assert made["another"].loader == Rate(0, 2)


@pytest.mark.parametrize(
    ("share", "severe", "traceml", "tensorboard", "xprof"),
    [
        (0.04, False, False, False, False),
        (0.07, False, False, True, True),
        (0.15, False, True, True, True),
        (0.5, True, True, True, True),
    ],
)
def test_the_other_tools_thresholds(
    share: float, severe: bool, traceml: bool, tensorboard: bool, xprof: bool
) -> None:
    assert baselines.traceml(share).loader is traceml
    assert ("severe" in baselines.traceml(share).words) is severe
    assert baselines.tensorboard_plugin(share).loader is tensorboard
    assert baselines.xprof(share).loader is xprof
    assert ("highly" in baselines.xprof(share).words) is severe


def test_the_input_share_is_the_part_of_the_steps_spent_in_next() -> None:
    share = baselines.input_share(builders.profile(workers=0, fetch_ms=30.0, step_ms=10.0))
    assert share is not None
    assert 0.6 < share < 0.9
    assert baselines.input_share(builders.empty_profile()) is None


@pytest.mark.parametrize(
    ("busy", "waiting", "loader", "resource"),
    [(0.95, 0.0, True, CPU), (0.3, 0.6, True, IO), (0.3, 0.1, False, "")],
)
def test_sagemakers_rules_need_half_of_the_readings(
    busy: float, waiting: float, loader: bool, resource: str
) -> None:
    profile = builders.profile(cpus=4)
    times = tuple(range(0, 10**10, 10**9))

    def cpu(name: str, fraction: float) -> Series:
        values = tuple(fraction * 4 * at for at in times)
        return Series(name, "ns", "cumulative", "machine", times, values)

    series = {
        "machine_busy_ns": cpu("machine_busy_ns", busy),
        "machine_iowait_ns": cpu("machine_iowait_ns", waiting),
    }
    said = baselines.sagemaker(builders.without(profile, series=MappingProxyType(series)))
    assert (said.loader, said.resource) == (loader, resource)
    nothing = builders.without(profile, series=MappingProxyType({}))
    assert baselines.sagemaker(nothing).loader is None


def test_cases_of_a_folder_take_their_labels_from_beside_or_inside(tmp_path: Path) -> None:
    for name in ("07-one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "slow.py").write_text("import torch\ntorch.load('x')\n")
    fixed = "import torch\ntorch.load('x', mmap=True)\nlabels = torch.frombuffer(b'')\n"
    (tmp_path / "07-one" / "fixed.py").write_text(fixed)
    (tmp_path / "labels.json").write_text(json.dumps({"07": ["disk_latency"]}))
    (tmp_path / "two" / "labels.json").write_text(json.dumps(["gc_pauses", "step_overhead"]))
    (tmp_path / "three" / "case.json").write_text(json.dumps({"cause": "decode_cpu"}))
    found = {entry.name: entry for entry in external(tmp_path)}
    assert found["07-one/slow"].causes == ("disk_latency",)
    assert found["07-one/slow"].advice == ("frombuffer", "mmap", "mmap=true")
    assert found["07-one/fixed"].healthy
    assert found["07-one/fixed"].gone == ("disk_latency",)
    assert found["two/slow"].causes == ("gc_pauses", "step_overhead")
    assert found["three/slow"].causes == ("decode_cpu",)
    (tmp_path / "three" / "case.json").unlink()
    with pytest.raises(InputError, match="three"):
        list(external(tmp_path))


def test_an_entry_comes_back_from_its_file() -> None:
    entry = next(entry for entry in own() if entry.shares)
    assert Entry.from_json(json.loads(json.dumps(entry.to_json()))) == entry
    with pytest.raises(InputError, match="no entry"):
        Entry.from_json({"name": "x"})


def test_a_milder_run_counts_only_where_its_trouble_still_costs_something() -> None:
    mild = Entry("x", "single", "", ("decode_cpu",), "mild", step=1.5, batch_s=0.1)
    costly = builders.profile(0, fetch_ms=20, step_ms=30)
    assert cost_of_trouble(mild, costly) == pytest.approx(0.4, abs=0.05)
    assert cost_of_trouble(mild, builders.profile(0, fetch_ms=2, step_ms=30)) < LEAST_COST
    severe = Entry("x", "single", "", ("decode_cpu",), "severe")
    assert cost_of_trouble(severe, costly) == 1


def test_the_corpus_has_every_label_or_says_why_not() -> None:
    entries = list(own())
    labels = {cause for entry in entries for cause in entry.causes}
    assert labels | set(NOT_REBUILT) == set(RESOURCE_OF) - {"cores_taken"}
    assert not labels & set(NOT_REBUILT)
    assert sum(entry.group == "healthy" for entry in entries) >= 20
    assert len({entry.name for entry in entries}) == len(entries)


# what PyTorch, Hugging Face datasets and this package bring, and what the extra `test` names
AT_HAND = {"torch", "numpy", "datasets", "pyarrow", "PIL"}
AT_HAND |= {"accelerate", "cv2", "h5py", "lmdb", "pandas"}


def test_loaders_written_blind_have_known_labels_and_need_only_what_is_at_hand() -> None:
    entries = list(written_blind())
    assert sum(not entry.repaired for entry in entries) > 90
    assert len({entry.name for entry in entries}) == len(entries)
    assert {cause for entry in entries for cause in entry.causes} <= set(RESOURCE_OF)
    assert not any(map(in_every_tier, entries))
    for entry in entries:
        names = imported(Path(entry.source)) - set(sys.stdlib_module_names)
        assert names <= AT_HAND, entry.name


def imported(path: Path) -> set[str]:
    """First parts of all modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_loaders_written_blind_have_a_line_of_their_own() -> None:
    rows = [
        verdict("decode_cpu", group="blind slow"),
        verdict("gc_pauses", group="blind slow"),
        verdict("gc_pauses", true=(HEALTHY,), group="blind slow"),
        verdict("gc_pauses", true=(HEALTHY,), group="blind fixed"),
    ]
    (line,) = [line for line in severities(rows) if "written blind" in line]
    assert "alarm in 1 of 1 healthy" in line
    assert "1 of 2: 50 %" in line


def test_the_page_names_machine_labels_and_what_was_not_measured() -> None:
    skipped = dataclasses.replace(
        verdict(true=("disk_bandwidth",)), skipped="throttling a device needs root"
    )
    rows = [verdict("gc_pauses"), verdict(HEALTHY, true=(HEALTHY,), group="healthy"), skipped]
    rows[0] = dataclasses.replace(rows[0], recorded="2030-01-01T10:20:30+00:00")
    rows.append(dataclasses.replace(verdict("lock_contention"), tier="no_ptrace"))
    text = page(rows, "a box of 3 cores", "2030-01-02")
    assert "a box of 3 cores; judged 2030-01-02." in text
    assert "full: 1 profiles, recorded 2030-01-01 10:20 to 2030-01-01 10:20 UTC" in text
    assert "- no_ptrace: `decode_cpu` (lock_contention ×1)." in text
    assert "| `decode_cpu` | 0 of 1 | 0 of 1 | gc_pauses ×1 |" in text
    assert "throttling a device needs root" in text
    assert "pin_memory_misuse" in text
    assert "0 of 1: 0 % (0 to 79)" in text
    assert CONSUMER in text
