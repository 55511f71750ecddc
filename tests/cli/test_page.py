"""Tests of the commands `page` and `explore`."""

from click.testing import CliRunner

import exported
from echolearn.cli import main
from echolearn.export.page.server import PageServer


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


def test_the_command_explore_ends_with_a_sentence(tmp_path, monkeypatch):
    def stopped(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(PageServer, "serve_forever", stopped)
    model = tmp_path / "m.safetensors"
    exported.classifier(5).save(model)
    done = CliRunner().invoke(main, ["explore", str(model)])
    assert done.exit_code == 130
    assert "m.safetensors is at http://127.0.0.1:" in done.output
    assert "until you press Ctrl-C" in done.output
    assert "stopped: the page is no longer served." in done.output
