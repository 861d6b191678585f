"""What the trace of block devices adds to findings about storage."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.block import BlockIssuer
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from tests import builders
from tests.block_values import issuer, trace

ON_DISK = builders.profile(2, disk_fraction=0.8, cpu_fraction=0.2)
ALONE = builders.profile(0, disk_fraction=0.8, cpu_fraction=0.2)
WAITED_S = sum(
    part.time_ns for row in diagnose(ON_DISK).waits.workers for part in row.parts
    if part.name == "disk"
) / 1e9  # fmt: skip


def finding(profile: Profile, cause: str = "disk_latency") -> Finding:
    return next(row for row in diagnose(profile).findings if row.cause == cause)


def said(*issuers: BlockIssuer, profile: Profile = ON_DISK, **changes: Any) -> str:
    traced = builders.without(profile, block=trace(*issuers, **changes))
    return " ".join(finding(traced).evidence).replace("\u00a0", " ")


def test_a_slow_device_is_what_the_workers_waited_for() -> None:
    text = said(issuer(busy_s=0.9 * WAITED_S, device_s=0.9 * WAITED_S))
    assert "the device itself is what they waited for" in text
    assert "vda answered half of the reads within 100 µs, 99 % within 400 µs" in text


def test_a_long_queue_is_told_from_a_slow_device() -> None:
    text = said(issuer(busy_s=0.3 * WAITED_S, device_s=0.3 * WAITED_S, queue_s=0.6 * WAITED_S))
    assert "for longer in its queue" in text
    assert "the device itself" not in text


def test_waits_that_never_reached_the_device_are_told_with_what_may_hold_them() -> None:
    own = issuer(busy_s=0.1 * WAITED_S, device_s=0.1 * WAITED_S)
    text = said(own)
    assert "passed before a request was made" in text
    assert "io.max" in text
    assert "%ioscope limits" in finding(builders.without(ON_DISK, block=trace(own))).advice
    assert "%ioscope limits" not in finding(ON_DISK).advice


def test_the_kernels_own_workers_may_have_asked_for_the_loop() -> None:
    own = issuer(busy_s=0.1 * WAITED_S, device_s=0.1 * WAITED_S)
    text = said(own, issuer("other", -1, name="kworker", device_s=WAITED_S))
    assert "before a request was made" not in text


def test_others_who_keep_the_device_busy_are_named() -> None:
    text = said(
        issuer(busy_s=0.6 * WAITED_S, device_s=0.6 * WAITED_S),
        issuer("other", -1, name="backup", device_s=2.4 * WAITED_S),
        issuer("child", -1, name="ffmpeg", device_s=0.1 * WAITED_S),
    )
    assert "which others kept busy" in text
    assert "77 % belongs to other programs (backup 77 %)" in text
    assert "ffmpeg" not in text


@pytest.mark.parametrize("others", [0.0, 0.2])
def test_quiet_others_are_not_mentioned(others: float) -> None:
    text = said(
        issuer(busy_s=0.6 * WAITED_S, device_s=0.6 * WAITED_S),
        issuer("other", -1, name="backup", device_s=others * WAITED_S),
    )
    assert "other programs" not in text


def test_others_who_ask_now_and_then_are_not_mentioned_either() -> None:
    text = said(
        issuer(busy_s=0.01, device_s=0.01),
        issuer("other", -1, name="backup", device_s=0.05, queue_s=0.05),
    )
    assert "other programs" not in text


def test_a_loop_without_workers_has_the_lines_too() -> None:
    assert "vda answered half of the reads" in said(issuer("consumer", -1), profile=ALONE)


def test_with_many_lost_events_no_sums_are_told() -> None:
    text = said(issuer(busy_s=0.1 * WAITED_S), lost=2000)
    assert "stood waiting for storage" not in text
    assert "vda answered" in text


def test_where_nobody_knows_who_asked_nothing_is_said_about_it() -> None:
    plain = finding(ON_DISK).evidence
    assert finding(builders.without(ON_DISK, block=trace(knows_issuers=False))).evidence == plain
    assert finding(builders.without(ON_DISK, block=trace())).evidence == plain
