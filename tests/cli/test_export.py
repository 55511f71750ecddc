"""Tests of the command `export`."""

import pytest
from click.testing import CliRunner

import exported
import toyspeech
from echolearn.cli.main import main
from echolearn.export import plan_of
from echolearn.export.c.header import c_header
from echolearn.export.onnx.graph import onnx_model
from echolearn.export.page.document import build_page, page_model


def test_the_command(tmp_path):
    model, out = tmp_path / "model.safetensors", tmp_path / "model.h"
    esn = exported.classifier()
    esn.save(model)
    done = CliRunner().invoke(main, ["export", str(model), "--out", str(out), "--name", "toy", "--numbers", "int8"])
    assert done.exit_code == 0, done.output
    assert f"written: {out}" in done.output
    assert out.read_text() == c_header(plan_of(esn), name="toy", numbers="int8")
    done = CliRunner().invoke(main, ["export", str(model), "--out", str(tmp_path / "model.c")])
    assert done.exit_code == 2
    assert "has no known ending" in done.output
    pytest.importorskip("onnx")
    done = CliRunner().invoke(main, ["export", str(model), "--out", str(tmp_path / "model.onnx"), "--step"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model.onnx").read_bytes() == onnx_model(plan_of(esn), step=True)


def test_a_recogniser_as_a_page(tmp_path):
    model, out = tmp_path / "toy.safetensors", tmp_path / "page.html"
    toyspeech.recognizer().save(model)
    done = CliRunner().invoke(main, ["export", str(model), "--out", str(out), "--name", "toy"], catch_exceptions=False)
    assert done.exit_code == 0
    assert out.read_text() == build_page([page_model("toy", toyspeech.recognizer())])


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "frames.csv").write_text("a,b\n1,2\n")
    done = CliRunner().invoke(main, ["export", str(tmp_path / "frames.csv"), "--out", str(tmp_path / "model.h")])
    assert done.exit_code == 2
    assert "frames.csv is a text file (such as CSV) and not a model file; expected" in done.output
