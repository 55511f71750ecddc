"""Tests of the command `info`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import toys
from echolearn import ESNClassifier, SeriesClassifier, SeriesRegressor
from echolearn.cli import info
from echolearn.cli.info import describe_model
from echolearn.speech import Corpus


def test_a_network_is_described_by_its_size_and_its_changed_settings() -> None:
    X, _ = toys.echoes(sequences=4)
    _, y = toys.labels(sequences=4)
    network = ESNClassifier(7, epochs=2, spectral_radius=0.5, random_state=0).fit(X, y)
    text = describe_model(network, Path("net.safetensors"))
    assert "7 hidden units" in text
    assert "learned: W and W_rec" in text
    assert "spectral_radius=0.5" in text
    assert re.search(r"2 epochs in \d:\d\d$", text, re.M)  # without held-out data, there is no error of them
    assert "activation=" not in text
    held = ESNClassifier(7, epochs=2, random_state=0).fit(X, y, validation=(X[:1], y[:1]))
    best = min(row["valid_error"] for row in held.history_)
    assert f", smallest held-out error while learning {100 * best:.1f} %" in describe_model(held, Path("held"))


def test_models_of_whole_series_are_described() -> None:
    X, _ = toys.echoes(sequences=6)
    labels, values = ["a", "b"] * 3, np.arange(6.0)
    assert "2 classes (a, b), one answer per sequence" in describe_model(SeriesClassifier(5).fit(X, labels), "file")
    assert "1 value, one answer per sequence" in describe_model(SeriesRegressor(5).fit(X, values), "file")


def test_a_corpus_is_described_part_by_part(opened: Corpus) -> None:
    text = info.describe_corpus(opened)
    for part, frames in opened.frames.items():
        assert any(line.split()[:2] == [part, f"{frames:,}"] for line in text.splitlines())
    assert "synthetic" not in text


def test_missing_packages_are_listed_with_the_extra_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(info.EXTRAS, "no_such_package", "report")
    text = info.describe_installation()
    assert "no_such_package: missing; pip install 'echolearn[report]'" in text
    assert "cache:" in text


def test_info_on_a_corpus_and_on_the_installation(run: Callable[..., Result], corpus: str) -> None:
    assert "valid" in run("info", "--corpus", corpus).output
    assert "cache:" in run("info").output
