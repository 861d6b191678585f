"""Requests joined from events: latencies, who asked, and what goes wrong in between."""

from __future__ import annotations

import random
from typing import Any

from jupyter_ioscope.block_trace.events import LOST, Event
from jupyter_ioscope.block_trace.requests import Latencies, Requests


def event(kind: str, time_us: int, sector: int = 0, **more: Any) -> Event:
    given: dict[str, Any] = {"device": "8,0", "operation": "read", "sectors": 8, "tid": 7}
    return Event(kind, time_us, sector=sector, **{**given, "name": "cat", **more})


def summary(*events: Event) -> dict[str, Any]:
    requests = Requests()
    requests.add(events)
    return requests.summary()


def test_queue_and_device_are_told_apart() -> None:
    found = summary(event("insert", 100), event("issue", 130), event("complete", 180))
    (total,) = found["totals"]
    assert (total["requests"], total["bytes"]) == (1, 4096)
    assert (total["queue_mean_us"], total["device_mean_us"]) == (30, 50)
    assert (found["events"], found["unmatched"]) == (3, 0)
    (issuer,) = found["issuers"]
    assert (issuer["tid"], issuer["name"], issuer["queue_us"], issuer["busy_us"]) == (
        7,
        "cat",
        30,
        50,
    )


def test_whoever_inserted_a_request_asked_not_the_kernel_thread_that_issued_it() -> None:
    found = summary(
        event("insert", 1, tid=7, name="python"),
        event("issue", 2, tid=44, name="kworker/1:1H"),
        event("complete", 3, tid=0, name="<idle>"),
    )
    assert [(row["tid"], row["name"]) for row in found["issuers"]] == [(7, "python")]


def test_overlapping_requests_of_a_thread_keep_the_device_busy_once() -> None:
    found = summary(
        event("issue", 0, 0), event("issue", 10, 8),
        event("complete", 30, 0), event("complete", 40, 8),
        event("issue", 100, 16), event("complete", 105, 16),
    )  # fmt: skip
    (issuer,) = found["issuers"]
    assert (issuer["device_us"], issuer["busy_us"]) == (30 + 30 + 5, 40 + 5)


def test_one_sector_of_two_devices_and_of_two_operations_are_different_requests() -> None:
    found = summary(
        event("issue", 0), event("issue", 1, device="8,16"), event("issue", 2, operation="write"),
        event("complete", 10, operation="write"), event("complete", 20, device="8,16"),
        event("complete", 30),
    )  # fmt: skip
    rows = {(row["device"], row["operation"]): row["device_mean_us"] for row in found["totals"]}
    assert rows == {("8,0", "read"): 30, ("8,0", "write"): 8, ("8,16", "read"): 19}


def test_a_flush_is_known_whatever_sector_its_ends_say() -> None:
    found = summary(
        event("issue", 0, 0, operation="flush", sectors=0),
        event("complete", 28, 2**64 - 1, operation="flush", sectors=0),
    )
    assert [(row["operation"], row["device_p50_us"]) for row in found["totals"]] == [("flush", 28)]


def test_a_request_that_the_device_refused_waited_until_it_was_issued_again() -> None:
    for again in ([], [event("insert", 25)]):
        found = summary(
            event("insert", 0),
            event("issue", 20),
            *again,
            event("issue", 50),
            event("complete", 60),
        )
        (total,) = found["totals"]
        assert (total["queue_mean_us"], total["device_mean_us"]) == (50, 10)
        assert found["unmatched"] == 0


def test_a_request_that_completes_in_parts_ends_with_the_last() -> None:
    found = summary(
        event("issue", 0, 100, sectors=24), event("complete", 10, 100, sectors=8),
        event("complete", 30, 108, sectors=16),
    )  # fmt: skip
    (total,) = found["totals"]
    assert (total["requests"], total["bytes"], total["device_mean_us"]) == (1, 24 * 512, 30)


def test_a_request_that_became_part_of_another_one_is_forgotten() -> None:
    found = summary(
        event("insert", 0, 8, tid=1), event("insert", 5000, 8, tid=2),
        event("issue", 5001, 8), event("complete", 5002, 8),
    )  # fmt: skip
    assert found["totals"][0]["queue_mean_us"] == 1
    assert [row["tid"] for row in found["issuers"]] == [2]


def test_what_began_before_the_trace_is_counted_apart() -> None:
    assert summary(event("complete", 5))["unmatched"] == 1


def test_requests_under_way_when_events_were_lost_are_given_up() -> None:
    found = summary(
        event("issue", 0), Event(LOST), event("complete", 900_000),
        event("issue", 900_010), event("complete", 900_020),
    )  # fmt: skip
    assert found["unmatched"] == 2
    assert found["totals"][0]["device_worst_us"] == 10
    assert found["issuers"][0]["busy_us"] == 10


def test_endlessly_many_requests_and_threads_take_bounded_memory() -> None:
    requests = Requests()
    requests.add(event("issue", n, n * 8, tid=n + 1) for n in range(70_000))
    assert len(requests._open) <= 1 << 16
    assert len(requests._issuers) <= 4097


def test_percentiles_are_within_one_percent_and_the_histogram_holds_all() -> None:
    draw = random.Random(3)
    values = [int(draw.lognormvariate(6, 1.5)) for _ in range(5000)]
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    ordered = sorted(values)
    for fraction in (0.5, 0.99, 0.999):
        true = ordered[-int(-fraction * len(ordered) // 1) - 1]
        assert true * 0.99 <= latencies.percentile_us(fraction) <= true
    assert sum(latencies.histogram()) == 5000
    assert latencies.worst_us == ordered[-1]
    assert latencies.total_us == sum(values)
    assert Latencies().percentile_us(0.5) == 0
    assert Latencies().histogram() == []


def test_the_histogram_has_a_bucket_a_power_of_two() -> None:
    latencies = Latencies()
    for value in (0, 1, 2, 3, 4, 1023, 1024):
        latencies.add(value)
    assert latencies.histogram() == [2, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1]
