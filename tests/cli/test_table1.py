"""Tests of the command `table1`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]
Refused = Callable[..., str]


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
    assert "all 50 cells (one seed)" in full.output
    assert not (tmp_path / "cache").exists()  # no speech is synthesised for it
    own = run("table1", "--estimate", "--corpus", corpus, "--columns", "all", "--seeds", 2, "--out", out)
    assert "all 40 cells (2 seeds)" in own.output
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
