"""Tests of the command `serve`: what it imports, and its refusals; tests/export/service runs it as a process."""

import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from echolearn.cli.main import main
from services import MODELS


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.safetensors"
    MODELS["classifier"]().save(file)
    return file


def test_a_model_of_the_runtime_is_served_without_compiled_code(path):
    code = f"""
import sys
from echolearn.cli.serve import _opened
from echolearn.export.service import server
from echolearn.export.service.access import Access
from echolearn.export.service.application import Service
from echolearn.export.service.limits import Limits
from pathlib import Path
Service(_opened(Path({str(path)!r})), Limits(), Access()).application()
print([name for name in ("numba", "llvmlite", "scipy", "sklearn") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_mistakes_of_the_command_are_one_sentence(path, tmp_path, monkeypatch):
    monkeypatch.delenv("ECHOLEARN_TOKEN", raising=False)
    run = CliRunner().invoke
    open_host = run(main, ["serve", str(path), "--host", "0.0.0.0"])
    assert open_host.exit_code == 2
    assert "--token-file" in open_host.output
    nothing = run(main, ["serve", str(tmp_path / "nothing")])
    assert nothing.exit_code == 2
    assert "no model file" in nothing.output
    weak = tmp_path / "token"
    weak.write_text("short")
    assert "no usable token" in run(main, ["serve", str(path), "--token-file", str(weak)]).output


def test_a_port_in_use_is_one_sentence(path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-m", "echolearn", "serve", str(path), "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Try another --port" in done.stderr
    assert "Traceback" not in done.stderr
