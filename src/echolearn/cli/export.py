"""The command `export`: a model as ONNX, as C, or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from echolearn.cli.options import FILE, force_option
from echolearn.cli.outputs import claim, report
from echolearn.export import export_model
from echolearn.speech.recognition._recognizer import load_any


@click.command()
@click.argument("model", type=FILE)
@click.option("--out", type=FILE, required=True,
              help="The file to write: its ending is .onnx for ONNX, .h for C, .html for a page.")  # fmt: skip
@force_option
@click.option("--name", default="esn", show_default=True,
              help="The prefix of all names in C; in a page, the name of the model.")  # fmt: skip
@click.option("--step", is_flag=True, help="ONNX: one frame and a state at a time, instead of whole sequences.")
@click.option("--numbers", type=click.Choice(["float32", "float64", "int16", "int8"]),
              help="In which numbers the network computes; int16 and int8 for C.  [default: its own]")  # fmt: skip
def export(*, model: Path, out: Path, name: str, step: bool, numbers: str | None) -> None:
    """Write MODEL (.safetensors) as an ONNX file, as a header in C, or as a page for the browser.

    For a recogniser of speech, the network is written; in C, a second header computes its features from sound.
    """
    claim(out, *([out.with_name(f"{out.stem}_features.h")] if out.suffix == ".h" else []))
    for path in export_model(load_any(model), out, name=name, step=step, numbers=numbers):
        report(path, f" ({path.stat().st_size:,} bytes)")
