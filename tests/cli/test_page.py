"""Tests of the command `page`."""

from click.testing import CliRunner

import exported
from echolearn.cli import main


def test_the_command_page(tmp_path):
    model, out = tmp_path / "m.safetensors", tmp_path / "page.html"
    exported.classifier(5).save(model)
    done = CliRunner().invoke(main, ["page", str(model), "--out", str(out)])
    assert done.exit_code == 0
    assert done.output == f"written: {out} ({out.stat().st_size:,} bytes); open it in a browser.\n"
    assert out.read_text().startswith("<!doctype html>")
    done = CliRunner().invoke(main, ["page", str(model), "--out", str(tmp_path / "page.txt")])
    assert done.exit_code == 2
    assert "expected a name that ends in .html" in done.output
