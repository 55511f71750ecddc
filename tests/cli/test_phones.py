"""Tests of `echolearn phones` from its arguments to what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from echolearn.cli.run_progress import RunLines
from echolearn.paper import phones as experiment
from speechfiles import write_timit

Run = Callable[..., Result]
Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out, which take longer than all the rest."""
    monkeypatch.setattr(experiment, "draw_figures", lambda *_: [])


def test_from_the_command_line_and_again(run: Run, corpus: str, tmp_path: Path) -> None:
    words = ("phones", "--corpus", corpus, "--units", 12, "--epochs", 2, "--out", tmp_path)
    first = run(*words, "--systems", "fixed,learned", "--seed", 2)
    assert first.exit_code == 0, first.output
    assert "estimated time and memory of every system" in first.output
    assert "[2/2] learned: 2 epochs at most" in first.output
    assert "report.html, phones.md, phones.json" in first.output
    table = json.loads((tmp_path / "phones.json").read_text())
    assert [r["system"] for r in table["rows"]] == ["fixed", "learned"]
    assert (table["settings"]["seed"], table["level"], table["complete"]) == (2, "corpus", True)
    again = run(*words, "--systems", "fixed,learned", "--seed", 2, "--level", "39")
    assert "its network is kept" in again.output
    assert json.loads((tmp_path / "phones.json").read_text())["level"] == "phone39"
    third = run(*words, "--systems", "fixed", "--seed", 2)
    assert "fixed: reused from an earlier run, phone error: test" in third.output


def test_an_estimate_alone_writes_nothing(run: Run, corpus: str, tmp_path: Path) -> None:
    for words in (("--corpus", corpus), ("--corpus", "synthetic", "--frames", 60_000)):
        found = run("phones", *words, "--out", tmp_path / "out", "--estimate")
        assert found.exit_code == 0, found.output
        assert "all 4 systems: about" in found.output
    assert not (tmp_path / "out").exists()


def test_ctrl_c_says_how_to_go_on(run: Run, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunLines, "decode", stopped)
        found = run("phones", "--corpus", corpus, "--units", 8, "--systems", "fixed", "--out", tmp_path)
    assert found.exit_code == 130
    assert "run the same command again to continue" in found.output
    assert json.loads((tmp_path / "phones.json").read_text())["complete"] is False


def test_mistakes_are_reported(refused: Refused, corpus: str, tmp_path: Path) -> None:
    words = ("phones", "--corpus", corpus, "--out", tmp_path / "out")
    assert "expected some of fixed" in refused(*words, "--systems", "fixd")
    assert "39" in refused(*words, "--level", "40")
    assert "order" in refused(*words, "--order", "9")
    assert "did you mean" in refused(*words, "--set", "spectral_radus=1")
    assert "what the systems differ by" in refused(*words, "--set", "bidirectional=true")
    assert not (tmp_path / "out").exists()


def test_a_configuration_file_sets_the_options(run: Run, corpus: str, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f'corpus = "{corpus}"\nunits = 8\nsystems = ["fixed"]\norder = 3\nout = "{tmp_path / "out"}"\n'
        "[estimator]\nleak = 0.5\n"
    )
    result = run("phones", "--config", config)
    assert result.exit_code == 0, result.output
    settings = json.loads((tmp_path / "out" / "phones.json").read_text())["settings"]
    assert (settings["order"], settings["changes"]["leak"], settings["systems"]) == (3, 0.5, ["fixed"])


def test_timit_is_scored_in_39_classes_by_default(run: Run, tmp_path: Path) -> None:
    root = write_timit(tmp_path / "timit", upper=False)
    result = run(
        "phones", "--corpus", f"timit:{root}", "--cache", tmp_path / "cache", "--systems", "fixed", "--units", 8,
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = json.loads((tmp_path / "out" / "phones.json").read_text())
    assert (table["level"], table["phones"]) == ("phone39", 39)
