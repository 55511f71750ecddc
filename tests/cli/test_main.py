from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from echolearn.cli import configuration
from echolearn.cli import progress as display
from echolearn.cli.main import main
from echolearn.experiments import table1
from echolearn.experiments.table1 import Cell, Plan
from echolearn.reporting import table as report
from smallcorpus import STATES, write


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz')}"


@pytest.fixture(scope="module")
def model(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.safetensors"
    result = run("train", path, "--corpus", corpus, "--units", 15, "--epochs", 2, "--set", "leak=[0.2, 1.0]")
    assert result.exit_code == 0, result.output
    return path


def run(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(*words: Any) -> str:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.output


def test_help_waits_for_nothing_slow() -> None:
    code = (
        "import sys, echolearn.cli\n"
        "slow = {'numpy', 'scipy', 'sklearn', 'numba', 'rich', 'matplotlib', 'safetensors'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(slow)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["table1", "train", "tune", "evaluate", "predict", "align", "info"])
def test_every_command_explains_itself(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "--corpus" in result.output
    assert "--config" in result.output


def test_table1_from_the_command_line(corpus: str, tmp_path: Path) -> None:
    words = ("table1", "--corpus", corpus, "--units", "5", "--epochs", 2, "--columns", "esn,W_m1", "--out", tmp_path)
    first = run(*words)
    assert first.exit_code == 0, first.output
    assert "[2/2] 5 units, W learned, m=1: 2 epochs" in first.output
    assert "TIMIT" in first.output
    again = run(*words)
    assert again.output.count("kept from before") == 2
    assert json.loads((tmp_path / "table1.json").read_text())["rows"][0]["columns"]["W_m1"]["epochs"] == 2


def test_ctrl_c_says_how_to_continue(corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table1, "run", interrupted)
    result = run("table1", "--corpus", corpus, "--out", tmp_path)
    assert result.exit_code == 130
    assert result.output.strip().splitlines()[-1].startswith("stopped; run the same command again to continue")


def test_train_evaluate_predict_info(corpus: str, model: Path, tmp_path: Path) -> None:
    assert not list(model.parent.glob("*.checkpoint"))
    assert "state error: test" in run("evaluate", model, "--corpus", corpus).output
    numbers = json.loads(run("evaluate", model, "--corpus", corpus, "--part", "valid", "--json").output)
    assert 0 < numbers["valid_error"] < 1
    assert numbers["phone_error"] <= numbers["valid_error"]
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.mlf").exit_code == 0
    assert (tmp_path / "x.mlf").read_text().startswith('#!MLF!#\n"*/u05.lab"\n0 ')
    assert run("predict", model, "--corpus", corpus, "--out", tmp_path / "x.npz").exit_code == 0
    with np.load(tmp_path / "x.npz", allow_pickle=False) as kept:
        np.testing.assert_allclose(kept["posteriors"].sum(axis=1), 1, rtol=1e-5)
        assert kept["lengths"].sum() == len(kept["posteriors"])
        assert set(kept["state_names"]) <= set(STATES)
    about = run("info", model).output
    assert "15 hidden units" in about
    assert "leak=(0.2, 1.0)" in about


def test_tune_finds_settings_that_train_takes(corpus: str, tmp_path: Path) -> None:
    out, fixed = tmp_path / "search", ("--units", 8, "--set", "learn=none", "--set", "readout=ridge")
    first = run("tune", "--corpus", corpus, *fixed, "--trials", 2, "--out", out)
    assert first.exit_code == 0, first.output
    assert "best of 2 trials" in first.output
    again = run("tune", "--corpus", corpus, *fixed, "--trials", 3, "--out", out)
    assert "2 trials kept from before" in again.output
    page = (out / "report.html").read_text()
    assert "Every trial, best first" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org", "")
    model = tmp_path / "best.safetensors"
    trained = run("train", model, "--corpus", corpus, "--config", out / "best.toml")
    assert trained.exit_code == 0, trained.output
    assert "learn='none'" in run("info", model).output
    assert "holds another search" in refused("tune", "--corpus", corpus, "--units", 9, "--out", out)


def test_align_writes_the_labels_of_every_utterance(corpus: str, tmp_path: Path) -> None:
    assert run("align", "--corpus", corpus, "--out", tmp_path / "a.mlf").exit_code == 0
    assert (tmp_path / "a.mlf").read_text().count('.lab"') == 24


def test_info_on_a_corpus_and_on_the_installation(corpus: str) -> None:
    assert "valid" in run("info", "--corpus", corpus).output
    assert "cache:" in run("info").output


def test_a_configuration_file_sets_everything(corpus: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f'corpus = "{corpus}"\nunits = [5, 6]\nepochs = 1\ncolumns = ["esn", "W_m1"]\nout = "{tmp_path / "out"}"\n'
        "[paper]\nstep_size = 0.01\n"
    )
    result = run("table1", "--config", config, "--units", "7")
    assert result.exit_code == 0, result.output
    table = json.loads((tmp_path / "out" / "table1.json").read_text())
    assert [row["units"] for row in table["rows"]] == [7]  # the command line wins
    kept = json.loads((tmp_path / "out" / "cells" / "W_m1-7-0.json").read_text())["cell"]
    assert kept["settings"]["step_size"] == 0.01
    assert kept["settings"]["epochs"] == 1


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("unit = 5", "did you mean units?"),
        ("[paper]\nstepsize = 1", "did you mean step_size?"),
        ("[papers]\nridge = 1", "did you mean paper?"),
        ("paper = 3", "[paper]"),
        ("[units]\nx = 3", "one value"),
        ("units = ", "not a TOML file"),
        ("epochs = 'many'", "many"),
        ("[paper]\nridge = -1", "ridge=-1"),
    ],
)
def test_mistakes_in_a_configuration_file_are_named(content: str, word: str, corpus: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(content)
    assert word in refused("table1", "--config", config, "--corpus", corpus, "--out", tmp_path / "out")


def test_mistakes_on_the_command_line_are_named(corpus: str, model: Path, tmp_path: Path) -> None:
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
    assert "damaged" in refused("evaluate", tmp_path / "junk", "--corpus", corpus)
    missing = refused("predict", model, tmp_path / "a.wav", tmp_path / "b.wav", "--out", tmp_path / "x.mlf")
    assert "a.wav" in missing
    assert "b.wav" in missing


def test_an_unexpected_error_is_not_hidden(corpus: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(table1, "run", broken)
    assert isinstance(run("table1", "--corpus", corpus, "--out", tmp_path).exception, ZeroDivisionError)


def test_values_of_set_are_toml_or_words() -> None:
    found = configuration.assignments(["a=1", "b=[0.1, 0.9]", "c=tanh", "d=true", 'e="x"'])
    assert found == {"a": 1, "b": [0.1, 0.9], "c": "tanh", "d": True, "e": "x"}
    settings = configuration.estimator_settings({"lookback": "none", "learn": "none"}, ["lookback", "learn"], "x")
    assert settings == {"lookback": None, "learn": "none"}


def test_time_left_by_hand() -> None:
    now = [0.0]
    left = display.TimeLeft({"a": 10.0, "b": 30.0, "c": 60.0}, lambda: now[0])
    assert left.of_table() is None
    left.finish("c", kept=True)
    left.start("a")
    now[0] = 2.0
    left.epoch(1, 5)
    assert left.of_cell() == pytest.approx(8.0)
    assert left.of_table() == pytest.approx(38.0)
    now[0] = 10.0
    left.finish("a", kept=False)
    left.start("b")
    assert left.of_table() == pytest.approx(30.0)
    left.epoch(6, 10)  # went on from a checkpoint after its fifth epoch
    now[0] = 13.0
    assert left.of_cell() == pytest.approx(12.0)


def test_the_live_view_shows_the_table_as_it_fills() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with display.watch(console, report.TITLES) as watch:
        plan = Plan(units=(100,), columns=("esn", "W_m1"))
        done, running = plan.cells()
        watch.plan(plan, {done: 1.0, running: 40.0})
        watch.start(done, 0)
        watch.finish(done, {"test_error": 0.612, "valid_error": 0.6, "seconds": 1.0}, False)
        watch.start(running, 20)
        watch.epoch(running, {"epoch": 5, "valid_error": 0.55})
        shown = Console(file=io.StringIO(), width=120)
        shown.print(watch.view())  # type: ignore[attr-defined]
        text = shown.file.getvalue()  # type: ignore[attr-defined]
    for word in ("61.2", "25 % done", "epoch 5/20  valid 55.0 %", "1 of 2 cells", "left"):
        assert word in text


def test_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with display.stages(Console(file=out)) as progress:
        for done in range(1, 101):
            progress("computing features", done, 100)
    assert out.getvalue().splitlines()[-1] == "computing features: 100 of 100"
    assert len(out.getvalue().splitlines()) < 10
    lines = display.watch(Console(file=out), report.TITLES)
    assert type(lines) is display.Lines
    lines.plan(None, {Cell(5, "esn", 1): 1.0})
    lines.finish(Cell(5, "esn", 1), {"test_error": 0.5, "valid_error": 0.5, "seconds": 1.0}, True)
    assert "5 units, fixed ESN, seed 1: kept from before" in out.getvalue()


def test_progress_bars_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with display.fitting(console, 4) as (row_done, say):
        row_done({"epoch": 1, "valid_error": 0.5})
        say("a note")
    assert "a note" in console.file.getvalue()  # type: ignore[attr-defined]


def test_lines_speak_between_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "EVERY", 0.0)
    out = io.StringIO()
    with display.fitting(Console(file=out), 2) as (row_done, _):
        row_done({"epoch": 1, "valid_error": 0.25})
    assert "epoch 1/2  valid 25.0 %" in out.getvalue()
    lines = display.Lines(Console(file=out, width=200), report.TITLES)
    cell = Cell(5, "W_m1", 0)
    lines.plan(SimpleNamespace(), {cell: 1.0})
    lines.start(cell, 4)
    lines.epoch(cell, {"epoch": 1, "valid_error": 0.5})
    assert "(table: about" in out.getvalue()
