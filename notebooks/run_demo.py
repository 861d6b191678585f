"""Runs a tutorial as a reader would and prints what it shows: the terminal's view of a notebook.

    python notebooks/run_demo.py notebooks/01_first_profile.ipynb

The text comes from the notebook's own outputs; nothing is measured or worded here. The executed
notebook and a page of it are left in `.demo/`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from traitlets.config import Config

SHOWN = "demo"  # the tag of cells whose outputs are printed
CELL_TIMEOUT_S = 300
# the static part of an output first: the page has no kernel and loads nothing
PAGE_PRIORITY = ["text/html", "image/png", "image/jpeg", "text/markdown", "text/plain"]


def execute(notebook: NotebookNode, folder: Path) -> str | None:
    """Run every cell with a fresh kernel in `folder`. The error's text if a cell failed."""
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],  # its warnings are not the reader's
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        on_cell_start=lambda cell, cell_index: progress(cell, cell_index),
    )
    try:
        client.execute()
    except CellExecutionError as error:
        return str(error)
    return None


def progress(cell: NotebookNode, cell_index: int) -> None:
    """One line for each code cell, so that nobody waits before a silent terminal."""
    if cell.cell_type == "code":
        first = next(iter(cell.source.strip().splitlines()), "")
        print(f"  cell {cell_index + 1}: {first[:70]}", file=sys.stderr, flush=True)


def shown_text(notebook: NotebookNode) -> Iterator[str]:
    """The plain-text outputs of the cells tagged for the terminal, in order."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and SHOWN in cell.metadata.get("tags", []):
            yield from filter(None, map(output_text, cell.outputs))


def output_text(output: NotebookNode) -> str:
    """What a front end without pictures would show of one output."""
    if output.output_type == "stream":
        return str(output.text).rstrip() if output.name == "stdout" else ""
    return str(output.get("data", {}).get("text/plain", "")).rstrip()


def write_page(notebook: NotebookNode, path: Path) -> None:
    """A page that opens from disk."""
    config = Config()
    config.NbConvertBase.display_data_priority = PAGE_PRIORITY
    exporter = HTMLExporter(config=config, mathjax_url="", require_js_url="")  # type: ignore[no-untyped-call]
    page, _ = exporter.from_notebook_node(notebook)
    path.write_text(page, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--out", type=Path, default=Path(".demo"), help="default: .demo")
    arguments = parser.parse_args()
    source: Path = arguments.notebook

    print(f"Running {source} (a few thousand photographs are made on the first run)")
    started = time.monotonic()
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    error = execute(notebook, source.resolve().parent)

    arguments.out.mkdir(parents=True, exist_ok=True)
    executed = arguments.out / f"{source.stem}.executed.ipynb"
    page = arguments.out / f"{source.stem}.html"
    nbformat.write(notebook, executed)  # type: ignore[no-untyped-call]
    write_page(notebook, page)

    for text in shown_text(notebook):
        print(f"\n{text}")
    print(f"\nTook {time.monotonic() - started:.0f} s.")
    print(f"Executed notebook: {executed.resolve()}")
    print(f"As a page:         {page.resolve()}")
    if error:
        print(f"\nA cell failed:\n{error}", file=sys.stderr)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
