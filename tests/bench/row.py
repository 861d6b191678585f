"""A line of the page of measurements, and its words."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table. `value` and the interval are in the unit of `goal`."""

    what: str
    measured: str
    interval: str
    goal: str
    met: str


def table(rows: list[Row]) -> str:
    """A Markdown table."""
    head = "| what | measured | interval | goal | reached |\n|---|---|---|---|---|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def judged(value: float, low: float, high: float, goal: float) -> str:
    """Whether an upper goal was reached, honestly where the interval straddles it."""
    if high <= goal:
        return "met"
    if low > goal:
        return "not met"
    return f"{'met' if value <= goal else 'not met'}, within doubt"


def reached(value: float, goal: float) -> str:
    return "met" if value <= goal else "not met"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


def signed_percent(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"
