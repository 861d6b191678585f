"""Lines of the kernel's block events, as several kernels print them."""

from __future__ import annotations

import pytest

from jupyter_ioscope.block_trace.events import LOST, Event, Lines, operation_of

# Linux 6.18, from a virtual machine's disk.
NEW = b"""\
          python-15347   [001] ...1. 37181.475687: block_rq_insert: 254,0 DS 4096 () 98980464 + 8 be,0,4 [python]
    kworker/1:1H-44      [001] ..... 37181.475743: block_rq_issue: 254,0 DS 4096 () 98980464 + 8 be,0,4 [kworker/1:1H]
 ioscope blocked-15554   [001] ..s.. 37181.483542: block_rq_complete: 254,0 DS () 98980464 + 8 be,0,4 [0]
    kworker/0:0H-10      [000] ..... 37181.530679: block_rq_issue: 254,0 FF 0 () 0 + 0 none,0,0 [kworker/0:0H]
          <idle>-0       [001] ..s.. 37181.530707: block_rq_complete: 254,0 FF () 18446744073709551615 + 0 none,0,0 [0]
              dd-5634    [000] ..... 36618.602386: block_rq_issue: 254,0 RA 16384 () 29947752 + 32 be,0,4 [dd]
"""  # noqa: E501
# Older kernels: no priority; flags of four letters, or none, and the process beside the thread.
OLD = b"""\
           <...>-1203  [003] ...1  1022.704119: block_rq_insert: 8,0 R 4096 () 20480 + 8 [cat]
             cat-1203  [003] ....  1022.704125: block_rq_issue: 8,0 R 4096 () 20480 + 8 [cat]
           <idle>-0    [003] d.h.  1022.704571: block_rq_complete: 8,0 R () 20480 + 8 [0]
"""
NO_FLAGS = b"""\
 jbd2/sda1-8-311   (    311) [002]  9731.000042: block_rq_issue: 8,0 FWFS 4096 () 77 + 8 [jbd2/sda1-8]
             dd-9 (-------) [002]  9731.000050: block_rq_complete: 8,0 N (12 00 00 00 24 00) 0 + 0 [0]
"""  # noqa: E501


def events(text: bytes) -> list[Event]:
    return list(Lines().events(text))


def test_a_new_kernels_lines_are_read_with_names_that_hold_blanks_and_slashes() -> None:
    found = events(NEW)
    assert found[0] == Event(
        "insert", 37181475687, "254,0", "discard", 98980464, 8, 15347, "python"
    )
    assert [(one.kind, one.tid, one.name) for one in found[1:3]] == [
        ("issue", 44, "kworker/1:1H"),
        ("complete", 15554, "ioscope blocked"),
    ]
    assert [one.operation for one in found[3:]] == ["flush", "flush", "read"]
    assert found[4].name == "<idle>"
    assert (found[5].sector, found[5].sectors) == (29947752, 32)


def test_an_older_kernels_lines_lack_the_priority() -> None:
    assert [(one.kind, one.device, one.sector, one.sectors) for one in events(OLD)] == [
        ("insert", "8,0", 20480, 8),
        ("issue", "8,0", 20480, 8),
        ("complete", "8,0", 20480, 8),
    ]
    assert events(OLD)[2].time_us - events(OLD)[1].time_us == 446


def test_columns_that_options_add_or_take_away_change_nothing() -> None:
    first, second = events(NO_FLAGS)
    assert (first.name, first.tid, first.operation) == ("jbd2/sda1-8", 311, "write")
    assert (second.kind, second.operation) == ("complete", "")


@pytest.mark.parametrize("size", [1, 7, 100])
def test_lines_that_come_in_pieces_are_joined(size: int) -> None:
    lines = Lines()
    found = [
        event for at in range(0, len(NEW), size) for event in lines.events(NEW[at : at + size])
    ]
    assert found == events(NEW)


def test_lost_events_are_told_and_other_lines_passed_over() -> None:
    text = b"CPU:1 [LOST 4242 EVENTS]\n# tracer: nop\n\n\xff\xfe garbage\n" + OLD
    assert [one.kind for one in events(text)] == [LOST, "insert", "issue", "complete"]


@pytest.mark.parametrize(
    ("rwbs", "operation"),
    [
        ("R RA RS RM", "read"),
        ("W WS FWFS WFSM", "write"),
        ("D DS", "discard"),
        ("FF F", "flush"),
        ("N NS Z", ""),
    ],
)
def test_the_operation_is_told_by_one_letter(rwbs: str, operation: str) -> None:
    assert {operation_of(word) for word in rwbs.split()} == {operation}
