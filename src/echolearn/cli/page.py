"""The command `page`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path

import click

from echolearn.cli.options import FILE, force_option


@click.command()
@click.argument("model", type=FILE)
@click.option("--out", type=FILE, required=True, help="The file to write; its ending is .html.")
@force_option
@click.option("--compare", type=FILE, help="A second model with the same inputs, shown beside the first.")
@click.option(
    "--example",
    type=FILE,
    help="A CSV file with which the page opens, one step per line; for a recogniser, a recording.",
)
def page(*, model: Path, out: Path, compare: Path | None, example: Path | None) -> None:
    """Write MODEL (.safetensors) as one page for the browser, in which it runs.

    The page needs nothing else and sends nothing: open the file, or put it on any web server.
    """
    from echolearn.cli.outputs import claim, report
    from echolearn.export.page.document import build_page, open_models
    from echolearn.modelfile.atomic import write_atomically

    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html")
    claim(out)
    write_atomically(out, build_page(open_models(model, compare, example)).encode("utf-8"))
    report(out, f" ({out.stat().st_size:,} bytes); open it in a browser.")
