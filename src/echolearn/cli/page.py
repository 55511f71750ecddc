"""The commands `page` and `explore`. Whatever is slow to import is imported when they run."""

from __future__ import annotations

from pathlib import Path

import click

from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import FILE, force_option

compare_option = click.option("--compare", type=FILE, help="A second model of the same inputs, to be shown beside it.")
example_option = click.option(
    "--example",
    type=FILE,
    help="A CSV file with which the page opens, one step per line; of a recogniser, a recording.",
)


@click.command()
@click.argument("model", type=FILE)
@click.option("--out", type=FILE, required=True, help="The file to write; its ending is .html.")
@force_option
@compare_option
@example_option
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
    built = build_page(open_models(model, compare, example))
    write_atomically(out, built.html.encode("utf-8"))
    report(out, f" ({out.stat().st_size:,} bytes); open it in a browser.")


@click.command()
@click.argument("model", type=FILE)
@compare_option
@example_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: a free one.")
@click.option("--open", "show", is_flag=True, help="Open the page in the default browser.")
@click.pass_context
def explore(
    ctx: click.Context, /, *, model: Path, compare: Path | None, example: Path | None, port: int, show: bool
) -> None:
    """Serve the page of MODEL (.safetensors) on this machine alone, until Ctrl-C."""
    import webbrowser

    from echolearn.export.page.document import build_page, open_models
    from echolearn.export.page.server import PageServer

    built = build_page(open_models(model, compare, example))
    with PageServer(built.html, built.policy, port) as server:
        ctx.meta[RESUME_NOTE] = "stopped: the page is no longer served."
        click.echo(f"{model.name} is at {server.address} until you press Ctrl-C.")
        if show and not webbrowser.open(server.address):
            click.echo("no browser could be opened here; open the address yourself.", err=True)
        server.serve_forever()
