"""The command `serve`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import click

from echolearn.cli.errors import UserError
from echolearn.cli.options import FILE, all_of

INSTALL_SERVE = "pip install 'echolearn[serve]'"
_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
# The options that limit what clients may ask for.
_LIMITS = (
    ("--body-mb", click.FloatRange(0.001, 1000), 8.0, "The largest body, in megabytes."),
    ("--frames", click.IntRange(min=1), 100_000, "The most frames in a request."),
    ("--requests", click.IntRange(min=1), 16, "The most requests at the same time."),
    ("--streams", click.IntRange(min=1), 64, "The most streams at the same time."),
    ("--connections", click.IntRange(min=1), 512, "The most connections at the same time."),
    ("--threads", click.IntRange(1, 64), 2, "Threads that answer requests; as many others answer streams."),
    ("--seconds", click.FloatRange(min=0.1), 30.0, "The longest time for an answer."),
    ("--body-seconds", click.FloatRange(min=0.1), 20.0, "The longest time for a body to arrive, or to take an answer."),
    ("--header-seconds", click.FloatRange(min=0.1), 10.0, "The longest time for the headers of a request to arrive."),
    ("--idle-seconds", click.FloatRange(min=0.1), 60.0, "The longest time between two messages of a stream."),
)


@click.command()
@click.argument("model", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True,
              help="The address to listen at. Any other than loopback requires a token.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
              help="The port; 0: any free one.")  # fmt: skip
@click.option("--token-file", type=FILE, help="A file with the token that clients send.  [default: $ECHOLEARN_TOKEN]")
@click.option("--origin", "origins", multiple=True, metavar="URL",
              help="A site whose pages may send requests, or the public address behind a proxy; "
                   "may be given several times.")  # fmt: skip
@click.option("--page/--no-page", default=True, show_default=True,
              help="Show the model at /, as `echolearn page` does; a separate process makes the page.")  # fmt: skip
@all_of(*(click.option(name, type=kind, default=default, show_default=True, help=text)
          for name, kind, default, text in _LIMITS))  # fmt: skip
def serve(
    *, model: Path, page: bool, host: str, port: int, token_file: Path | None, origins: tuple[str, ...], **limits: Any
) -> None:
    """Serve MODEL (.safetensors) over HTTP and websockets, until Ctrl-C.

    POST /predict takes sequences, /stream frames as they arrive, /recognize (for a recogniser) recordings. GET /model
    describes what the model takes. docs/howto/service.md has examples.
    """
    for name in _BLAS_THREADS:
        os.environ.setdefault(name, "1")  # read when NumPy is imported: requests run side by side, each on one core
    try:
        from echolearn.export.service import server
        from echolearn.export.service.access import Access, read_token
        from echolearn.export.service.application import Service
        from echolearn.export.service.limits import Limits
    except ImportError as problem:
        raise UserError(f"echolearn serve needs {problem.name}: {INSTALL_SERVE}") from problem

    access = Access.of(host, read_token(token_file), origins)
    body_bytes, seconds = round(limits.pop("body_mb") * 2**20), limits.pop("seconds")
    service = Service(_opened(model), Limits(body_bytes=body_bytes, request_seconds=seconds, **limits), access)
    shown = f"[{host}]" if ":" in host else host

    def started(chosen: int) -> None:
        click.echo(f"serving {model} at http://{shown}:{chosen} (Ctrl-C stops)", err=True)
        if page:
            Thread(target=_show_page, args=(service, model), daemon=True).start()

    try:
        server.run(service, host, port, started)
    except SystemExit as problem:
        raise UserError(f"cannot listen at {shown}:{port}; the port may be in use. Try another --port.") from problem
    click.echo("stopped.", err=True)


def _show_page(service: Any, model: Path) -> None:
    """Put the model's own page at `/`, as soon as it is made."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "page.html"
        command = [sys.executable, "-m", "echolearn", "page", str(model), "--out", str(out)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=300)
        if done.returncode == 0:
            service.page = out.read_text(encoding="utf-8")


def _opened(path: Path) -> Any:
    """Return the model of a file, with as little of the library as it needs."""
    from echolearn.modelfile.layout import RECOGNIZER
    from echolearn.modelfile.reader import file_kind

    if file_kind(path) == RECOGNIZER:
        from echolearn.export.service.recognizers import served_recognizer
        from echolearn.speech.recognition import load_recognizer

        return served_recognizer(load_recognizer(path))
    from echolearn.exceptions import ExportError
    from echolearn.export.service.models import open_light_model

    try:
        return open_light_model(path)
    except ExportError:
        from echolearn.estimators import load
        from echolearn.export.service.library import served

        return served(load(path))
