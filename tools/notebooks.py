"""The examples as executed notebooks; a line on stderr, or an error, is a failure.

    python tools/notebooks.py [--out runs/notebooks] [--html] [examples/plot_streaming.py ...]

The docstring of an example becomes the text at the top, and every paragraph of its code a cell; from where its figure
begins, all is one cell, because a figure is shown at the end of the cell that it was made in. Needs the extra `docs`,
and with --html nbconvert.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURE = re.compile(r"plt\.(figure|subplots|subplot_mosaic)\(")
SECONDS = 900  # for one cell


def cells_of(source: str) -> tuple[str, list[str]]:
    """Return the text of an example in Markdown, and its code in cells."""
    tree = ast.parse(source)
    lines = source.splitlines()
    body = [node for node in tree.body[1:] if not _is_argument_choice(node)]
    used = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    cells: list[str] = []
    last, in_figure = 0, False
    for node in body:
        if isinstance(node, ast.Import) and [name.name for name in node.names] == ["sys"] and "sys" not in used:
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        while first > 1 and lines[first - 2].startswith("#"):  # the comment above belongs to it
            first -= 1
        text = "\n".join(lines[first - 1 : node.end_lineno])
        gap = "\n" * (first - last)
        if cells and (in_figure or first == last + 1 or _are_imports(cells[-1], node)):
            cells[-1] += gap[: 2 if in_figure or _are_imports(cells[-1], node) else 1] + text
        else:
            cells.append(text)
        in_figure = in_figure or bool(FIGURE.search(text))
        last = node.end_lineno or first
    return _as_markdown(ast.get_docstring(tree) or ""), [*cells[:-1], cells[-1] + "\nplt.show()"]


def _is_argument_choice(node: ast.stmt) -> bool:
    """Return whether a statement chooses by the arguments of the command: to save the picture or to show it."""
    return isinstance(node, ast.If) and "sys.argv" in ast.unparse(node.test)


def _are_imports(cell: str, node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and cell.startswith(("import", "from"))


def _as_markdown(docstring: str) -> str:
    """Return a docstring with its title as a heading, without the line that says how the example is called."""
    title, _, rest = docstring.partition("\n")
    rest = re.sub(r"^=+\n", "", rest)
    rest = re.sub(r"\n    python examples/.*", "", rest)
    return f"# {title}\n{rest.rstrip()}"


def as_notebook(path: Path) -> Any:
    """Return an example as a notebook that has not run."""
    import nbformat

    new = nbformat.v4
    text, code = cells_of(path.read_text())
    notebook = new.new_notebook(cells=[new.new_markdown_cell(text), *map(new.new_code_cell, code)])
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
