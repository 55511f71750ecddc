"""Tests of the commands, from their arguments to what they write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import Result

from echolearn.cli.main import COMMANDS, main
from smallcorpus import STATES

Run = Callable[..., Result]
Refused = Callable[..., str]


@pytest.fixture(scope="module")
def model(run: Run, corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.safetensors"
    result = run("train", path, "--corpus", corpus, "--units", 15, "--epochs", 2, "--set", "leak=[0.2, 1.0]")
    assert result.exit_code == 0, result.output
    return path


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from echolearn.cli import main\n"
        "assert 'recognize' in CliRunner().invoke(main, ['--help']).output\n"
        "slow = {'numpy', 'scipy', 'sklearn', 'numba', 'rich', 'matplotlib', 'safetensors'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(slow)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_list_of_commands_has_the_first_sentence_of_each() -> None:
    with click.Context(main) as context:
        for name, (_, line) in COMMANDS.items():
            command = main.get_command(context, name)
            assert command.get_short_help_str(300) == line, name
        assert main.get_command(context, "nothing") is None


def test_the_package_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "echolearn", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("echolearn, version"), done.stderr


@pytest.mark.parametrize("command", ["table1", "phones", "train", "tune", "evaluate", "predict", "align", "info"])
def test_every_command_has_a_help_text(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "--corpus" in result.output
    assert "--config" in result.output


def test_table1_from_the_command_line(run: Run, corpus: str, tmp_path: Path) -> None:
    words = ("table1", "--corpus", corpus, "--units", "5", "--epochs", 2, "--columns", "esn,W_m1", "--out", tmp_path)
    first = run(*words)
    assert first.exit_code == 0, first.output
    assert "[2/2] 5 units, W learned, m=1: 2 epochs" in first.output
    assert "TIMIT" in first.output
    again = run(*words)
    assert again.output.count("reused from an earlier run") == 2
    assert json.loads((tmp_path / "table1.json").read_text())["rows"][0]["columns"]["W_m1"]["epochs"] == 2


def test_an_estimate_is_printed_and_nothing_is_fitted(run: Run, corpus: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    full = run("table1", "--full", "--estimate", "--out", out, "--cache", tmp_path / "cache")
    assert full.exit_code == 0, full.output
    assert "all 45 cells (one seed)" in full.output
    assert not (tmp_path / "cache").exists()  # no speech is synthesised for it
    own = run("table1", "--estimate", "--corpus", corpus, "--columns", "all", "--seeds", 2, "--out", out)
    assert "all 36 cells (2 seeds)" in own.output
    assert not out.exists()


def test_the_full_table_begins_with_its_estimate(run: Run, corpus: str, tmp_path: Path) -> None:
    words = ("--corpus", corpus, "--units", "5", "--columns", "esn", "--out", tmp_path)
    full = run("table1", "--full", *words)
    assert full.output.index("all 1 cells") < full.output.index("[1/1]")
    assert "estimated" not in run("table1", *words).output


def test_table1_at_another_level_scores_the_kept_networks(run: Run, corpus: str, tmp_path: Path) -> None:
    words = ("table1", "--corpus", corpus, "--units", "5", "--columns", "esn", "--out", tmp_path)
    assert run(*words).exit_code == 0
    seconds = (tmp_path / "cells" / "esn-5-0.json").stat().st_mtime_ns
    again = run(*words, "--level", "recognition")
    assert again.exit_code == 0, again.output
    assert "reused from an earlier run" in again.output
    assert "phone error of recognition" in again.output
    assert (tmp_path / "cells" / "esn-5-0.json").stat().st_mtime_ns == seconds
    assert json.loads((tmp_path / "table1.json").read_text())["level"] == "recognition"


def test_train_evaluate_predict_info(run: Run, corpus: str, model: Path, tmp_path: Path) -> None:
    assert not list(model.parent.glob("*.checkpoint"))
    assert "state error: test" in run("evaluate", model, "--corpus", corpus).output
    numbers = json.loads(run("evaluate", model, "--corpus", corpus, "--part", "valid", "--json").output)
    assert 0 < numbers["valid_error"] < 1
    assert numbers["phone_error"] <= numbers["valid_error"]
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.mlf").exit_code == 0
    assert (tmp_path / "x.mlf").read_text().startswith('#!MLF!#\n"*/u05.lab"\n0 ')
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.npz").exit_code == 0
    with np.load(tmp_path / "x.npz", allow_pickle=False) as stored:
        np.testing.assert_allclose(stored["posteriors"].sum(axis=1), 1, rtol=1e-5)
        assert stored["lengths"].sum() == len(stored["posteriors"])
        assert set(stored["state_names"]) <= set(STATES)
    described = run("info", model).output
    assert "15 hidden units" in described
    assert "leak=(0.2, 1.0)" in described


def test_tune_finds_settings_that_train_takes(run: Run, refused: Refused, corpus: str, tmp_path: Path) -> None:
    out, fixed = tmp_path / "search", ("--units", 8, "--set", "learn=none", "--set", "readout=ridge")
    first = run("tune", "--corpus", corpus, *fixed, "--trials", 2, "--out", out)
    assert first.exit_code == 0, first.output
    assert "best of 2 trials" in first.output
    again = run("tune", "--corpus", corpus, *fixed, "--trials", 3, "--out", out)
    assert "resuming after 2 finished trials" in again.output
    page = (out / "report.html").read_text()
    assert "Every trial, best first" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org", "")
    model = tmp_path / "best.safetensors"
    trained = run("train", model, "--corpus", corpus, "--config", out / "best.toml")
    assert trained.exit_code == 0, trained.output
    assert "learn='none'" in run("info", model).output
    assert "holds another search" in refused("tune", "--corpus", corpus, "--units", 9, "--out", out)


def test_align_writes_the_labels_of_every_utterance(run: Run, corpus: str, tmp_path: Path) -> None:
    assert run("align", "--corpus", corpus, "--out", tmp_path / "a.mlf").exit_code == 0
    assert (tmp_path / "a.mlf").read_text().count('.lab"') == 24


def test_info_on_a_corpus_and_on_the_installation(run: Run, corpus: str) -> None:
    assert "valid" in run("info", "--corpus", corpus).output
    assert "cache:" in run("info").output


def test_mistakes_on_the_command_line_are_reported(refused: Refused, corpus: str, model: Path, tmp_path: Path) -> None:
    assert "expected synthetic" in refused("info", "--corpus", "timmit:/x")
    assert "no such folder" in refused("info", "--corpus", f"timit:{tmp_path / 'none'}")
    assert "100,500" in refused("table1", "--units", "ten")
    assert "expected some of esn" in refused("table1", "--columns", "esm", "--corpus", corpus)
    assert "name=value" in refused("train", tmp_path / "m", "--set", "leak")
    assert "did you mean spectral_radius?" in refused("train", tmp_path / "m", "--set", "spectral_radus=1")
    assert "its folder does not exist" in refused("train", tmp_path / "none" / "m", "--corpus", corpus)
    assert ".mlf or .npz" in refused("predict", model, "--corpus", corpus, "--out", tmp_path / "x.txt")
    assert "no model file" in refused("evaluate", tmp_path / "none", "--corpus", corpus)
    (tmp_path / "junk").write_bytes(b"junk")
    assert "is a text file" in refused("evaluate", tmp_path / "junk", "--corpus", corpus)
    (tmp_path / "junk").write_bytes(bytes(range(100)))
    assert "damaged" in refused("evaluate", tmp_path / "junk", "--corpus", corpus)
    missing = refused("predict", model, tmp_path / "a.wav", tmp_path / "b.wav", "--out", tmp_path / "x.mlf")
    assert "a.wav" in missing
    assert "b.wav" in missing
