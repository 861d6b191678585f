"""Tutorials are saved without outputs, show something in the terminal, and check themselves."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
TUTORIALS = sorted(NOTEBOOKS.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in code_cells(path)]


@pytest.mark.parametrize(
    "name",
    [
        "01_first_profile",
        "02_find_the_cause",
        "03_toggle_and_compare",
        "04_hugging_face_datasets",
        "05_read_a_report",
        "06_storage_and_formats",
    ],
)
def test_the_tutorials_are_there_and_the_readme_leads_to_each(name: str) -> None:
    assert NOTEBOOKS / f"{name}.ipynb" in TUTORIALS
    readme = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    assert f"(notebooks/{name}.ipynb)" in readme


def test_five_loops_have_five_causes_and_an_answer_to_unfold() -> None:
    path = NOTEBOOKS / "02_find_the_cause.ipynb"
    checks = [cell for cell in code_cells(path) if "check" in cell["metadata"].get("tags", [])]
    assert all(cell["metadata"]["jupyter"]["source_hidden"] for cell in checks)
    texts = ["".join(cell["source"]) for cell in checks]
    causes = [re.findall(r"found\(slow, (.*)\)", text) for text in texts]
    assert len({cause for named in causes for cause in named}) == 5
    assert sum("assert fixed_s < 1.5 * slow_s" in text for text in texts) == 5
    text = path.read_text(encoding="utf-8")
    for word in ("**Look at**", "**Question.**", "<details>", "</details>"):
        assert text.count(word) == 5, word
    # every loop runs twice under ioscope: as it is, and repaired
    assert sum(source.startswith("%%ioscope") for source in sources(path)) == 10


def test_the_third_compares_a_loader_with_itself_and_meets_a_false_speed_up() -> None:
    text = "\n".join(sources(NOTEBOOKS / "03_toggle_and_compare.ipynb"))
    for call in (
        "ioscope.compare(loader, loader,",
        "ioscope.compare_parts(",
        "_ioscope.tune(",
        '_ioscope.figure("comparison")',
        '_ioscope.figure("tuning")',
        "exec(found.code)",
    ):
        assert call in text, call
    assert '"No winner: the arms delivered different data" in shown' in text
    assert 'assert nothing.verdict in {"same", "undecided"}' in text


@pytest.mark.beside
@pytest.mark.timeout(240)
def test_the_fourth_says_that_datasets_is_missing_and_does_nothing_then() -> None:
    path = NOTEBOOKS / "04_hugging_face_datasets.ipynb"
    first = sources(path)[0]
    script = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
sys.modules["datasets"] = None
shell = InteractiveShell.instance()
shell.run_cell({first!r}).raise_error()
shell.run_cell("raise RuntimeError").raise_error()
shell.run_cell("%%no_such_magic\\nraise RuntimeError").raise_error()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=True
    )
    assert "datasets is not installed" in done.stdout
    assert "RuntimeError" not in done.stdout + done.stderr


def test_the_fourth_takes_three_steps_and_tries_toggles_of_datasets() -> None:
    text = "\n".join(sources(NOTEBOOKS / "04_hugging_face_datasets.ipynb"))
    for call in (
        "ioscope.compare_parts(loader, names,",
        'ioscope.compare(rows, toggles=["hf_flatten_indices"]',
        'toggles=["hf_stream_batches"]',
        "ioscope.compare(first_step(), third_step(),",
        "_ioscope.profile.transforms",
    ):
        assert call in text, call


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_it_is_saved_without_outputs_for_the_standard_kernel(path: Path) -> None:
    assert all(cell["outputs"] == [] for cell in code_cells(path))
    assert all(cell["execution_count"] is None for cell in code_cells(path))
    assert read(path)["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_it_loads_the_extension_profiles_a_cell_and_asserts_what_it_says(path: Path) -> None:
    texts = sources(path)
    assert any(text.startswith("%load_ext ioscope") for text in texts)
    assert any(text.startswith("%%ioscope") for text in texts)
    asserts = sum(
        isinstance(node, ast.Assert)
        for text in texts
        for node in ast.walk(ast.parse(re.sub(r"(?m)^%.*$", "", text)))
    )
    assert asserts >= 5


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_terminal_has_something_to_show(path: Path) -> None:
    tagged = [cell for cell in code_cells(path) if "demo" in cell["metadata"].get("tags", [])]
    assert len(tagged) >= 2  # the report and a comparison
