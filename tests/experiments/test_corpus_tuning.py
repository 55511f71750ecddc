"""Tests of a search on a corpus; tests/cli/test_main.py runs one."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from echolearn import ESNClassifier
from echolearn.experiments.corpus_tuning import as_toml, tune_on_corpus
from echolearn.speech.corpus import open_corpus
from smallcorpus import arrays, write


def test_settings_are_written_as_a_configuration_file() -> None:
    settings = {"leak": (0.1, 1.0), "lookback": None, "activation": "tanh", "direct": False, "ridge": 1e-8}
    assert tomllib.loads(as_toml(50, settings)) == {
        "units": 50,
        "estimator": {"leak": [0.1, 1.0], "lookback": "none", "activation": "tanh", "direct": False, "ridge": 1e-8},
    }


def test_validation_utterances_without_known_states_are_reported(tmp_path: Path) -> None:
    given = arrays()
    part = np.repeat(given["split"], given["lengths"])
    labels = np.where(part == "valid", len(given["state_names"]), given["labels"]).astype(np.int16)
    names = np.array([*given["state_names"], "zh_s2"])
    corpus = open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}")
    with pytest.raises(ValueError, match="every validation utterance has states that no training frame has"):
        tune_on_corpus(corpus, ESNClassifier(5), tmp_path / "out", 1, {})
    assert not (tmp_path / "out").exists()
