"""Tests of what `echolearn info` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

import toys
from echolearn import ESNClassifier
from echolearn.experiments import descriptions
from echolearn.experiments.model_descriptions import describe_model
from echolearn.speech.corpus import Corpus


def test_a_network_is_described_by_its_size_and_its_changed_settings() -> None:
    X, _ = toys.echoes(sequences=4)
    _, y = toys.labels(sequences=4)
    network = ESNClassifier(7, epochs=2, spectral_radius=0.5, random_state=0).fit(X, y)
    text = describe_model(network, Path("net.safetensors"))
    assert "7 hidden units" in text
    assert "learned: W and W_rec" in text
    assert "spectral_radius=0.5" in text
    assert "2 epochs in" in text
    assert "activation=" not in text


def test_a_corpus_is_described_part_by_part(corpus: Corpus) -> None:
    text = descriptions.describe_corpus(corpus)
    for part, frames in corpus.frames.items():
        assert any(line.split()[:2] == [part, f"{frames:,}"] for line in text.splitlines())
    assert "synthetic" not in text


def test_missing_packages_are_listed_with_the_extra_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(descriptions.EXTRAS, "no_such_package", "report")
    text = descriptions.describe_installation()
    assert "no_such_package: missing; pip install 'echolearn[report]'" in text
    assert "cache:" in text
