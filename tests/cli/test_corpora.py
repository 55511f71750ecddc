"""Tests of the corpus of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from echolearn.cli import corpora
from echolearn.speech.espeak import EspeakError


def test_a_missing_synthesiser_is_one_message(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise EspeakError("espeak-ng is missing")

    monkeypatch.setattr(corpora, "open_corpus", missing)
    assert "error: espeak-ng is missing" in refused("info", "--corpus", "synthetic", "--cache", tmp_path)


def test_the_options_name_the_corpus(corpus: str) -> None:
    opened = corpora.opened_corpus(
        corpus=corpus, frames=None, corpus_seed=0, cache=None, labels=None, normalise="utterance"
    )
    assert opened.name == corpus
