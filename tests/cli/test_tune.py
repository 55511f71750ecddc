"""Tests of the command `tune`."""

from __future__ import annotations

import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from echolearn import ESNClassifier
from echolearn.cli.tune import as_toml, tune_on_corpus
from echolearn.speech import open_corpus
from echolearn.tuning import _search
from smallcorpus import arrays, write


def test_settings_are_written_as_a_configuration_file() -> None:
    settings = {"leak": (0.1, 1.0), "lookback": None, "activation": "tanh", "direct": False, "ridge": 1e-8}
    assert tomllib.loads(as_toml(50, settings)) == {
        "units": 50,
        "estimator": {"leak": [0.1, 1.0], "lookback": "none", "activation": "tanh", "direct": False, "ridge": 1e-8},
    }
    given = {
        "learning": {"patience": None, "step_size": 0.1},
        "learning__step_size": 0.02,
        "reservoir__topology": "ring",
    }
    assert tomllib.loads(as_toml(50, given))["estimator"] == {
        "learning": {"patience": "none", "step_size": 0.02},
        "reservoir": {"topology": "ring"},
    }


def test_trials_are_fitted_on_train_and_scored_on_the_validation_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def record(estimator: ESNClassifier, X: Any, y: Any, **options: Any) -> None:
        given.update(options, X=X, y=y)
        raise KeyboardInterrupt

    monkeypatch.setattr(_search, "tune", record)
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz')}")
    with pytest.raises(KeyboardInterrupt):
        tune_on_corpus(corpus, ESNClassifier(5), tmp_path / "out", 3, {})
    names = np.array(corpus.state_names)
    for part, (X, y) in (("train", (given["X"], given["y"])), ("valid", given["validation"])):
        wanted_X, wanted_y = corpus.part(part)
        assert [x.tolist() for x in X] == [x.tolist() for x in wanted_X]
        assert [list(labels) for labels in y] == [list(names[labels]) for labels in wanted_y]
    assert given["trials"] == 3


def test_validation_utterances_without_known_states_are_reported(tmp_path: Path) -> None:
    given = arrays()
    part = np.repeat(given["split"], given["lengths"])
    labels = np.where(part == "valid", len(given["state_names"]), given["labels"]).astype(np.int16)
    names = np.array([*given["state_names"], "zh_s2"])
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    with pytest.raises(ValueError, match="every validation utterance has states that no training frame has"):
        tune_on_corpus(corpus, ESNClassifier(5), tmp_path / "out", 1, {})
    assert not (tmp_path / "out").exists()


def test_the_folder_of_a_search_is_made_with_those_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_search, "tune", stop)
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz')}")
    for _ in range(2):  # it may exist
        with pytest.raises(KeyboardInterrupt):
            tune_on_corpus(corpus, ESNClassifier(5), tmp_path / "searches" / "first", 3, {})
    assert (tmp_path / "searches" / "first").is_dir()


def test_tune_finds_settings_that_train_takes(
    run: Callable[..., Result], refused: Callable[..., str], corpus: str, tmp_path: Path
) -> None:
    out, fixed = tmp_path / "a search", ("--units", 8, "--set", "learn=none", "--set", "readout=ridge")
    first = run("tune", "--corpus", corpus, *fixed, "--trials", 2, "--out", out)
    assert first.exit_code == 0, first.output
    assert "best of 2 trials" in first.output
    again = run("tune", "--corpus", corpus, *fixed, "--trials", 3, "--out", out)
    assert "resuming after 2 finished trials" in again.output
    page = (out / "report.html").read_text()
    assert "Every trial, best first" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org", "")
    pasted = shlex.split(again.output.splitlines()[-1])
    assert pasted[:2] == ["echolearn", "train"]
    trained = run(*pasted[1:])
    assert trained.exit_code == 0, trained.output
    assert "learn='none'" in run("info", out / "model.safetensors").output
    assert "holds another search" in refused("tune", "--corpus", corpus, "--units", 9, "--out", out)


def test_the_printed_command_has_the_options_of_the_corpus(
    run: Callable[..., Result], corpus: str, tmp_path: Path
) -> None:
    options = ("--corpus", corpus, "--normalise", "corpus", "--corpus-seed", "3")
    found = run("tune", *options, "--units", 5, "--epochs", 0, "--trials", 1, "--out", tmp_path)
    words = shlex.split(found.output.splitlines()[-1])
    assert {tuple(words[k : k + 2]) for k in range(2, len(words), 2)} == {
        *(options[k : k + 2] for k in range(0, len(options), 2)),
        ("--config", str(tmp_path / "best.toml")),
        ("--out", str(tmp_path / "model.safetensors")),
    }


def test_a_missing_extra_is_named_before_the_corpus_is_opened(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    message = refused("tune", "--corpus", f"features:{tmp_path / 'missing.npz'}", "--out", tmp_path / "out")
    assert "pip install 'echolearn[tune]'" in message
    assert not (tmp_path / "out").exists()
