"""The limits of this process in words."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_ioscope.model.storage import Limits
from jupyter_ioscope.views.sections import Section, html_of, text_of


def headline(found: Limits) -> str:
    """Where this is, the cores, and how many limits press."""
    where = "" if found.place == "plain" else f"{found.place}: "
    pressing = [row.name for row in found.limits if row.state != "ok"]
    told = f"; limits that can hold a loader back: {', '.join(pressing)}" if pressing else ""
    many = "core" if found.cores == 1 else "cores"
    return f"{where}{found.cores:g} {many} may be used{told or '; no limit is tight'}"


def limits_text(found: Limits) -> str:
    """Limits as lines of at most 100 columns."""
    return text_of(headline(found), _sections(found))


def limits_html(found: Limits) -> str:
    """Limits as an HTML fragment without scripts."""
    return html_of(headline(found), _sections(found))


def _sections(found: Limits) -> Iterator[Section]:
    rows = tuple((row.name, row.text, row.state, row.source) for row in found.limits)
    pressing = [row for row in found.limits if row.state != "ok"]
    yield Section(
        "Limits of this process",
        (("", "value", "state", "from"), *rows),
        tuple(f"{row.name}: {row.effect}" for row in pressing),
    )
    yield Section("What follows for a loader", sentences=found.advice)
    for snippet in found.snippets:
        yield Section(snippet.place, code=snippet.code)
    yield Section("Not known", sentences=found.not_known)
    if found.evidence:
        yield Section("How the place is known", sentences=found.evidence)
