"""One page out of a new section and all that were there."""

from __future__ import annotations

from typing import Any

from tests.bench.table import INTRODUCTION, SECTIONS, page, where


def merged(results: dict[str, Any], new: str, earlier: str) -> str:
    """The whole file after the script `new` has run: its section is new, all others of the page
    `earlier` stay, and what that lacks comes from `results`.

    Another section is written anew only where its result is the one it was written from.
    """
    kept = sections(earlier)
    drawn = sections(page(results))
    for name, (title, _) in SECTIONS.items():
        if title in drawn and name != new and title in kept:
            same = ":" in results[name]["date"] and where(results[name]) in kept[title]
            drawn[title] = drawn[title] if same else kept[title]
    order = [title for title, _ in SECTIONS.values()]
    titles = sorted(kept.keys() | drawn.keys(), key=lambda one: order.index(one) if one in order
                    else len(order))  # fmt: skip
    return "\n".join([INTRODUCTION, *(drawn.get(title) or kept[title] for title in titles)])


def sections(text: str) -> dict[str, str]:
    """Title -> the section's text, its title line included, for every section of a page."""
    parts = text.split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}
