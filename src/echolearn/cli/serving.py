"""The command `serve`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from echolearn.cli.errors import UserError
from echolearn.cli.options import FILE

SERVE = "pip install 'echolearn[serve]'"
_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen at. Others than loopback require a token.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="The port; 0: any free one."
)
@click.option("--token-file", type=FILE, help="A file with the token that clients send.  [default: $ECHOLEARN_TOKEN]")
@click.option("--origin", "origins", multiple=True, metavar="URL",
              help="Another site whose pages may ask, or the public address behind a proxy; may be given several times.")  # fmt: skip
@click.option(
    "--body-mb",
    type=click.FloatRange(0.001, 1000),
    default=8.0,
    show_default=True,
    help="The largest body, in megabytes.",
)
@click.option(
    "--frames", type=click.IntRange(min=1), default=100_000, show_default=True, help="Most frames of a request."
)
@click.option(
    "--requests", type=click.IntRange(min=1), default=16, show_default=True, help="Most requests at the same time."
)
@click.option(
    "--streams", type=click.IntRange(min=1), default=64, show_default=True, help="Most streams at the same time."
)
@click.option(
    "--connections",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    help="Most connections at the same time.",
)
@click.option("--threads", type=click.IntRange(1, 64), default=2, show_default=True,
              help="Threads that answer requests; as many others answer streams.")  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=30.0, show_default=True, help="Most time for an answer."
)
@click.option("--body-seconds", type=click.FloatRange(min=0.1), default=20.0, show_default=True,
              help="Most time for a body to arrive, and for a client to take its answer.")  # fmt: skip
@click.option("--idle-seconds", type=click.FloatRange(min=0.1), default=60.0, show_default=True,
              help="Most time between two messages of a stream.")  # fmt: skip
def serve(
    *, model: Path, host: str, port: int, token_file: Path | None, origins: tuple[str, ...], **settings: float
) -> None:
    """Serve MODEL (.safetensors) over HTTP and websockets, until Ctrl-C.

    POST /predict answers to sequences, /stream to frames as they come, /recognize (of a recogniser) to recordings.
    GET /model says what it takes. docs/service.md has examples.
    """
    for name in _BLAS:
        os.environ.setdefault(name, "1")  # read when NumPy is imported: requests run side by side, each on one core
    try:
        from echolearn.export.service import server
        from echolearn.export.service.access import Access, read_token
        from echolearn.export.service.application import Service
        from echolearn.export.service.limits import Limits
    except ImportError as problem:
        raise UserError(f"echolearn serve needs {problem.name}: {SERVE}") from problem

    access = Access.of(host, read_token(token_file), origins)
    limits = Limits(
        body_bytes=round(settings["body_mb"] * 2**20),
        frames=int(settings["frames"]),
        requests=int(settings["requests"]),
        streams=int(settings["streams"]),
        connections=int(settings["connections"]),
        threads=int(settings["threads"]),
        request_seconds=settings["seconds"],
        body_seconds=settings["body_seconds"],
        idle_seconds=settings["idle_seconds"],
    )
    service = Service(_opened(model), limits, access)
    shown = f"[{host}]" if ":" in host else host

    def started(chosen: int) -> None:
        click.echo(f"serving {model} at http://{shown}:{chosen} (Ctrl-C stops)", err=True)

    try:
        server.run(service, host, port, started)
    except SystemExit as problem:
        raise UserError(f"cannot listen at {shown}:{port}; is something else there? Try another --port.") from problem
    click.echo("stopped.", err=True)


def _opened(path: Path) -> NetworkModel | SpeechModel:
    """Return the model of a file, with as little of the library as it needs."""
    from echolearn.modelfile.layout import RECOGNIZER
    from echolearn.modelfile.reader import file_kind

    if file_kind(path) == RECOGNIZER:
        from echolearn.export.service.recognizers import open_recognizer

        return open_recognizer(path)
    from echolearn.export.service.library import open_library_model

    return open_library_model(path)
