"""The examples as executed notebooks; a line on stderr, or an error, is a failure.

    python tools/notebooks.py [--out runs/notebooks] [--html] [examples/plot_streaming.py ...]

The docstring of an example becomes the text at the top. A line `# %%` begins a new block: the comment below it becomes
a cell of text, and the code after that a cell of code. Needs the extra `docs`, and with --html nbconvert.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 900  # for one cell


def cells_of(source: str) -> list[tuple[str, str]]:
    """Return the cells of an example in order, each as ("text" or "code", its content); text is Markdown."""
    tree = ast.parse(source)
    cells = [("text", _as_markdown(ast.get_docstring(tree) or ""))]
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno or 0 :])
    first, *blocks = re.split(r"^# %%.*\n?", code, flags=re.MULTILINE)
    cells.append(("code", first.strip()))
    for block in blocks:
        lines = block.splitlines()
        end = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
        prose = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:end])
        cells += [("text", _as_markdown(prose)), ("code", "\n".join(lines[end:]).strip())]
    return [cell for cell in cells if cell[1]]


def _as_markdown(text: str) -> str:
    """Return text with its headings, which are underlined in the examples, in Markdown."""
    text = re.sub(r"^(.+)\n=+$", r"# \1", text, flags=re.MULTILINE)
    return re.sub(r"^(.+)\n-+$", r"## \1", text, flags=re.MULTILINE).strip()


def as_notebook(path: Path) -> Any:
    """Return an example as a notebook that has not run."""
    import nbformat

    new = nbformat.v4
    make = {"text": new.new_markdown_cell, "code": new.new_code_cell}
    notebook = new.new_notebook(cells=[make[kind](content) for kind, content in cells_of(path.read_text())])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # the same in every run
    return notebook


def execute(notebook: Any, folder: Path) -> list[str]:
    """Run a notebook in a folder and keep its outputs; return what is wrong with them."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    try:
        NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    except CellExecutionError as problem:
        return [str(problem)]
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    noise = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    shown = any("image/png" in output.get("data", {}) for output in outputs)
    return noise if shown else [*noise, "no figure is shown"]


def main(arguments: list[str] | None = None) -> int:
    """Write the notebooks and say what is wrong; return the number of notebooks that failed."""
    import nbformat

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("examples", nargs="*", type=Path, help="the examples; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "notebooks", help="the folder of the notebooks")
    parser.add_argument("--html", action="store_true", help="write a page beside each notebook (needs nbconvert)")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for example in given.examples or sorted((ROOT / "examples").glob("plot_*.py")):
        notebook = as_notebook(example)
        problems = execute(notebook, given.out)
        place = given.out / f"{example.stem}.ipynb"
        nbformat.write(notebook, place)
        if given.html:
            from nbconvert import HTMLExporter

            place.with_suffix(".html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
        failed += bool(problems)
        print(f"{place}: {'; '.join(problems) if problems else 'ok'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
