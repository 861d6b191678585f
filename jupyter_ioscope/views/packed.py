"""Long columns of a report as one text each, for notebooks.

A notebook file gives every item of a list a line of its own, with its indent: a number of four
digits takes some twenty bytes there. As one text, "0 0.25 1" for numbers and a line each for names,
columns take a quarter, so that four times the frames fit into an output. The page reads both.
"""

from __future__ import annotations

from typing import Any, cast

from jupyter_ioscope.views.shapes import IReport

_NUMBERS = ("kinds", "name", "depth", "x0", "x1", "delta", "x", "y")
_TEXTS = ("names", "details", "over")  # cleaned, so that none holds a line feed


def packed(report: IReport) -> IReport:
    """The report with the columns of its flame graphs and tracks as texts; it stays as it is."""
    found: dict[str, Any] = dict(report)
    found["flames"] = [_packed(dict(flame)) for flame in report["flames"]]
    tracks = [_packed(dict(track)) for track in report["timeline"]["tracks"]]
    found["timeline"] = {**report["timeline"], "tracks": tracks}
    return cast(IReport, found)


def unpacked(row: dict[str, Any]) -> dict[str, Any]:
    """A flame graph or a track with its columns as lists again."""
    found = dict(row)
    for name, value in row.items():
        if isinstance(value, str) and name in _NUMBERS:
            found[name] = [float(word) if "." in word else int(word) for word in value.split(" ")]
        elif isinstance(value, str) and name in _TEXTS:
            found[name] = value.split("\n")
    return found


def _packed(row: dict[str, Any]) -> dict[str, Any]:
    for name, value in row.items():
        # a list of one stays: its text could be empty, and that is no list of one
        if isinstance(value, list) and len(value) > 1:
            if name in _NUMBERS:
                row[name] = " ".join(map(_number, value))
            elif name in _TEXTS:
                row[name] = "\n".join(value)
    return row


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
