"""The documents agree with the code they describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "notebooks").glob("*.md"))]


def rows(document: Path, heading: str) -> list[list[str]]:
    """Cells of the table whose head begins with `heading`, without head and rule."""
    lines = document.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading}"))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [name for name in targets if not (document.parent / name).exists()] == []


def test_the_readme_lists_exactly_the_options_of_the_magic() -> None:
    pytest.importorskip("IPython")
    from jupyter_ioscope.magic_line import parser

    listed = {cells[0].strip("`").split()[0] for cells in rows(ROOT / "README.md", "option of")}
    known = {text for text in parser().format_help().split() if text.startswith("--")}
    known = {text.strip("[],") for text in known}
    assert listed == known


def test_the_toggles_that_exist_are_listed_and_no_others() -> None:
    from jupyter_ioscope.trials.toggle import all_toggles

    firsts = [cells[0] for cells in rows(ROOT / "notebooks" / "toggles.md", "toggle |")]
    listed = {name.strip("` ") for first in firsts for name in first.split(",")}
    assert listed == {toggle.name for toggle in all_toggles()}


def test_what_each_toggle_may_change_is_said_once() -> None:
    from jupyter_ioscope.trials.toggle import all_toggles

    groups = [cells[1] for cells in rows(ROOT / "notebooks" / "toggles.md", "batches |")]
    said = [name.strip("` ") for group in groups for name in group.split(",")]
    assert sorted(said) == sorted(toggle.name for toggle in all_toggles())


def test_the_readme_counts_the_toggles_that_there_are() -> None:
    from jupyter_ioscope.trials.toggle import all_toggles

    told = re.search(r"The (\d+) toggles", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert told is not None
    assert int(told[1]) == len(all_toggles())


def test_plug_ins_go_where_contributing_says() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "jupyter_ioscope").rglob("*.py")
    )
    table = rows(ROOT / "CONTRIBUTING.md", "to add a")
    assert len(table) >= 4
    for what, folder, constant, group, _ in table:
        assert (ROOT / folder.strip("`")).is_dir(), what
        assert re.search(rf"^{constant.strip('`')}\b.*=", sources, re.MULTILINE), what
        assert f'"{group.strip("`")}"' in sources, what


def test_make_targets_that_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        named = re.findall(r"(?:`|^|\n)make ([a-z-]+)", document.read_text(encoding="utf-8"))
        assert set(named) <= targets, document.name
