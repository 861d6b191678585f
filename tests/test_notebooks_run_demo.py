"""`make demo`: the terminal shows a notebook's own outputs, and a failing cell fails the run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("nbconvert")

SCRIPT = Path(__file__).parent.parent / "notebooks" / "run_demo.py"
SHOWN = """
from IPython.display import display
display({"text/plain": "the verdict", "text/html": "<b>the verdict</b>"}, raw=True)
"""


def run(folder: Path, *cells: tuple[str, list[str]]) -> subprocess.CompletedProcess[str]:
    notebook = nbformat.v4.new_notebook()
    for source, tags in cells:
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    path = folder / "example.ipynb"
    nbformat.write(notebook, path)
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(path), "--out", str(folder / "out")],
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.beside
@pytest.mark.timeout(300)
def test_it_prints_tagged_outputs_and_leaves_the_executed_notebook_and_its_page(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, ("print('not for the terminal')", []), (SHOWN, ["demo"]))
    assert done.returncode == 0, done.stderr
    assert "\nthe verdict\n" in done.stdout
    assert "not for the terminal" not in done.stdout
    executed, page = (tmp_path / "out" / f"example{end}" for end in (".executed.ipynb", ".html"))
    assert str(executed) in done.stdout
    assert str(page) in done.stdout
    assert nbformat.read(executed, as_version=4).cells[0].outputs[0].text.startswith("not for")
    html = page.read_text(encoding="utf-8")
    assert "<b>the verdict</b>" in html
    assert re.findall(r"""(?:src|href)=["']https?:""", html) == []


@pytest.mark.beside
@pytest.mark.timeout(300)
def test_a_failing_cell_fails_the_run_after_what_was_reached_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path, (SHOWN, ["demo"]), ("raise ValueError('no photographs')", []))
    assert done.returncode == 1
    assert "the verdict" in done.stdout
    assert "no photographs" in done.stderr
    assert (tmp_path / "out" / "example.executed.ipynb").exists()
