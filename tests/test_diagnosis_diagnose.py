"""The whole diagnosis: it never raises, abstains on ties, and isolates what breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_ioscope import registry
from jupyter_ioscope.diagnosis import rules as rules_package
from jupyter_ioscope.diagnosis.diagnose import diagnose, judged
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Epoch
from tests import builders


def odd_profiles() -> dict[str, Profile]:
    base = builders.profile(2, batches=40)
    alone = builders.profile(0, batches=40)
    epoch = base.epochs[0]
    open_epoch = (epoch._replace(end_ns=None),)
    return {
        "nothing iterated": builders.empty_profile(),
        "no batch": builders.without(base, batches=(), fetches=(), threads=(), workers=()),
        "no batch, epoch only": builders.empty_profile(epochs=(Epoch(0, 0, 10, 10, 10),)),
        "one batch": builders.profile(2, batches=1),
        "one batch, no workers": builders.profile(0, batches=1),
        "two batches": builders.profile(2, batches=2),
        "more workers than batches": builders.profile(4, batches=2),
        "no sampler": builders.profile(2, tier="in_process"),
        "no fetch records": builders.without(base, fetches=()),
        "no fetch records, no workers": builders.without(alone, fetches=()),
        "nothing but batches": builders.without(
            base, fetches=(), threads=(), workers=(), epochs=(), loaders=(), stacks=None
        ),
        "workers killed": builders.with_killed_worker(base),
        "workers from before": builders.with_workers_before_profile(base),
        "workers from before, no sampler": builders.without(
            builders.with_workers_before_profile(base), threads=()
        ),
        "loop left early": builders.without(base, epochs=open_epoch),
        "unknown batch sizes": builders.without(
            base, batches=tuple(row._replace(samples=-1) for row in base.batches)
        ),
        "no time at all": builders.without(
            base,
            end_ns=base.start_ns,
            batches=tuple(
                row._replace(wait_start_ns=1, wait_end_ns=1, step_end_ns=1) for row in base.batches
            ),
        ),
        "samples cut short": builders.without(
            base, threads=tuple(replace(row, states=row.states[:3]) for row in base.threads)
        ),
        "states from the future": builders.without(
            base,
            threads=tuple(replace(row, states=(99,) * len(row.states)) for row in base.threads),
        ),
        "no schedstat": builders.without(
            base,
            threads=tuple(
                replace(row, run_ns=0, run_queue_ns=0, exact=False) for row in base.threads
            ),
        ),
        "empty stacks": builders.without(
            base, stacks=replace(base.stacks, frames=(), stacks=()) if base.stacks else None
        ),
        "clocks that disagree": builders.without(
            base,
            fetches=tuple(
                row._replace(start_ns=row.start_ns + 10**12, end_ns=row.end_ns + 10**12)
                for row in base.fetches
            ),
        ),
    }


@pytest.mark.parametrize("name", odd_profiles())
def test_odd_profiles_never_raise_and_always_get_a_sentence(name: str) -> None:
    diagnosis = diagnose(odd_profiles()[name])
    assert diagnosis.headline
    failed = [row for row in diagnosis.unknown if row.reason.startswith("it failed")]
    assert failed == []


def test_without_schedstat_the_parts_come_from_samples() -> None:
    waits = diagnose(odd_profiles()["no schedstat"]).waits
    for row in waits.workers:
        assert row.fraction("cpu") > 0.9
        assert sum(part.time_ns for part in row.parts) == pytest.approx(row.wall_ns, rel=0.02)


def test_the_same_profile_gives_the_same_diagnosis() -> None:
    profile = builders.profile(2, states={"cpu": 0.5, "disk": 0.3, "lock": 0.2}, seed=4)
    assert diagnose(profile) == diagnose(profile)


def test_equal_causes_are_not_told_apart() -> None:
    """A claim at 95 % may be wrong once in twenty times: of 40 profiles at most 4."""
    states = {"network": 0.45, "disk": 0.45, "cpu": 0.1}
    claimed = 0
    for seed in range(40):
        diagnosis = diagnose(builders.profile(2, states=states, seed=seed))
        assert {row.resource for row in diagnosis.findings[:2]} == {"network", "disk"}
        claimed += diagnosis.separated
        if not diagnosis.separated:
            assert diagnosis.would_separate
            assert "cannot be told apart" in diagnosis.detail
    assert claimed <= 4


@pytest.mark.parametrize("seed", range(6))
def test_clearly_unequal_causes_are_told_apart(seed: int) -> None:
    profile = builders.profile(
        2, states={"network": 0.7, "disk": 0.2, "cpu": 0.1}, batches=300, seed=seed
    )
    diagnosis = diagnose(profile)
    assert diagnosis.findings[0].resource == "network"
    assert diagnosis.separated
    assert diagnosis.would_separate == ""
    assert diagnosis.margin > 0.3


def _crashing(_: Facts) -> Finding | None:
    raise ZeroDivisionError("by a rule")


def _unmeasured(_: Facts) -> Finding | None:
    raise NotMeasuredError("the weather", "there is no window")


def test_a_rule_that_crashes_or_lacks_numbers_hides_nothing() -> None:
    rules = registry.plugins(rules_package, "RULE")
    profile = builders.profile(2)
    broken = [Rule("crash", _crashing), Rule("window", _unmeasured)]
    diagnosis = judged(profile, [broken[0], *rules, broken[1]])
    assert diagnosis.findings == judged(profile, rules).findings
    reasons = {row.rule: row.reason for row in diagnosis.unknown}
    assert "ZeroDivisionError" in reasons["crash"]
    assert reasons["window"] == "the weather was not measured: there is no window"


def test_every_rule_of_the_folder_is_found() -> None:
    names = {rule.name for rule in registry.plugins(rules_package, "RULE")}
    assert names >= {
        "consumer", "worker_cpu", "main_cpu", "main_wait", "disk", "page_fault", "network",
        "sleep", "gil", "lock", "hand_over", "oversubscribed", "start_up",
    }  # fmt: skip


def test_findings_are_ranked_by_what_removing_them_frees() -> None:
    profile = builders.profile(2, states={"sleep": 0.6, "cpu": 0.4}, batches=150)
    shares = [row.share for row in diagnose(profile).findings]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == 2


def test_gaps_of_the_profile_are_passed_on() -> None:
    profile = builders.profile(2)
    assert diagnose(profile).not_measured == profile.not_measured


def test_a_loader_made_anew_for_every_epoch_counts_as_one() -> None:
    """`for epoch in ...: for batch in DataLoader(...)`: the restarts are seen all the same."""
    once = builders.profile(2, epochs=6, batches=10, fetch_ms=4, start_ms=150)
    anew = builders.without(
        once,
        loaders=tuple(replace(once.loaders[0], loader=number) for number in range(6)),
        epochs=tuple(row._replace(loader=row.epoch) for row in once.epochs),
        batches=tuple(row._replace(loader=row.epoch) for row in once.batches),
        fetches=tuple(row._replace(loader=row.epoch) for row in once.fetches),
        workers=tuple(row._replace(loader=row.epoch) for row in once.workers),
    )
    diagnosis = diagnose(anew)
    assert diagnosis.findings == diagnose(once).findings
    assert [row.worker for row in diagnosis.waits.workers] == [0, 1]


def test_what_new_workers_do_in_their_first_fetch_counts_as_starting_them() -> None:
    base = builders.profile(2, epochs=6, batches=10, fetch_ms=4, start_ms=5)
    first = {min((f.start_ns, i) for i, f in enumerate(base.fetches) if f.pid == pid)[1]
             for pid in {f.pid for f in base.fetches}}  # fmt: skip
    slow = tuple(
        row._replace(start_ns=row.start_ns - 100_000_000) if index in first else row
        for index, row in enumerate(base.fetches)
    )
    before = diagnose(base).findings
    after = diagnose(builders.without(base, fetches=slow)).findings
    share = {row.cause: row.share for row in before}.get("worker_restart_per_epoch", 0.0)
    assert after[0].cause == "worker_restart_per_epoch"
    assert after[0].share > share + 0.2
