"""Tests of the command `table1`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from speechfiles import write_sample, write_timit

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
    assert "all 55 cells (one seed)" in full.output
    assert not (tmp_path / "cache").exists()  # no speech is synthesised for it
    own = run("table1", "--estimate", "--corpus", corpus, "--columns", "all", "--seeds", 2, "--out", out)
    assert "all 44 cells (2 seeds)" in own.output
    assert not out.exists()


def test_deep_networks_have_settings_of_their_own_in_the_configuration(
    run: Run, refused: Refused, corpus: str, tmp_path: Path
) -> None:
    config, out = tmp_path / "run.toml", tmp_path / "out"
    config.write_text("[deep]\nlayers = 2\nepochs = 3\nlearning.batch_size = 2\n")
    words = ("table1", "--corpus", corpus, "--units", 8, "--columns", "esn_deep,deep", "--out", out)
    done = run(*words, "--level", "state,phone39,segment,recognition", "--config", config)
    assert done.exit_code == 0, done.output
    assert "8 units, deep, learned: 3 epochs" in done.output
    assert "2 layers of 22" in done.output
    for folder in (out, out / "phone39", out / "segment", out / "recognition"):
        table = json.loads((folder / "table1.json").read_text())
        assert table["settings"]["deep"] == {"layers": 2, "epochs": 3, "learning": {"batch_size": 2}}
        row = table["rows"][0]
        assert (row["columns"]["esn_deep"]["epochs"], row["columns"]["deep"]["epochs"]) == (0, 3)
        assert row["relative_gain_deep"] is not None
    config.write_text("[deep]\nhidden_units = 7\n")
    assert "hidden_units" in refused(*words, "--config", config)


def test_a_table_begins_with_its_estimate(run: Run, corpus: str, tmp_path: Path) -> None:
    done = run("table1", "--corpus", corpus, "--units", "5", "--columns", "esn", "--out", tmp_path)
    assert done.output.index("all 1 cells") < done.output.index("[1/1]")


def test_table1_at_another_level_scores_the_kept_networks(run: Run, corpus: str, tmp_path: Path) -> None:
    words = ("table1", "--corpus", corpus, "--units", "5", "--columns", "esn", "--out", tmp_path)
    assert run(*words).exit_code == 0
    seconds = (tmp_path / "cells" / "esn-5-0.json").stat().st_mtime_ns
    again = run(*words, "--level", "recognition")
    assert again.exit_code == 0, again.output
    assert "reused from an earlier run" in again.output
    assert "phone error of recognition" in again.output
    assert (tmp_path / "cells" / "esn-5-0.json").stat().st_mtime_ns == seconds
    levels = [json.loads((tmp_path / name / "table1.json").read_text())["level"] for name in ("", "recognition")]
    assert levels == ["state", "recognition"]


def test_one_command_gives_the_table_of_every_level_of_timit(run: Run, tmp_path: Path) -> None:
    """The standard split, a note on what is missing, and four tables of the same network."""
    root = write_timit(tmp_path / "timit", upper=True, sphere=True)
    levels = ("state", "phone39", "segment", "recognition")
    out = tmp_path / "out"
    done = run("table1", "--corpus", f"timit:{root}", "--cache", tmp_path / "cache", "--units", 8, "--columns",
               "esn,W_Wrec_m3", "--epochs", 1, "--level", ",".join(levels), "--out", out)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.output.count("TIMIT test: 1 speakers, the standard split has 24") == 1  # not once per level
    tables = [json.loads((out / ("" if one == "state" else one) / "table1.json").read_text()) for one in levels]
    assert [table["level"] for table in tables] == list(levels)
    assert len({json.dumps(table["digest"]) for table in tables}) == 1
    assert sorted(p.name for p in (out / "segment").iterdir()) == [
        "report.html",
        "table1.csv",
        "table1.json",
        "table1.md",
    ]
    assert done.output.count("reused from an earlier run") == 2 * 3
    wrong = run("table1", "--corpus", f"timit:{root}", "--level", "state,words", "--out", out)
    assert "level is 'words'; expected one of state, phone48" in wrong.output


def test_the_sample_of_nltk_says_what_it_is_and_gives_the_same_tables(run: Run, tmp_path: Path) -> None:
    root = write_sample(tmp_path / "timit", sentences=3)
    out = tmp_path / "out"
    done = run("table1", "--corpus", f"timit:{root}", "--cache", tmp_path / "cache", "--units", 8, "--columns", "esn",
               "--level", "state,phone39,segment,recognition", "--out", out)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "a part of TIMIT, such as NLTK's sample: 16 speakers, 48 utterances" in done.output
    for folder in (out, out / "phone39", out / "segment", out / "recognition"):
        assert json.loads((folder / "table1.json").read_text())["complete"]
