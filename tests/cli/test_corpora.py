"""Tests of the corpus of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from echolearn.cli import corpora
from echolearn.exceptions import EspeakError
from speechfiles import write_sample


def test_a_missing_synthesiser_is_one_message(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise EspeakError("espeak-ng is missing")

    monkeypatch.setattr(corpora, "open_corpus", missing)
    assert "error: espeak-ng is missing" in refused("info", "--corpus", "synthetic", "--cache", tmp_path)


def test_the_options_name_the_corpus(corpus: str) -> None:
    opened = corpora.opened_corpus(
        corpus=corpus, frames=None, corpus_seed=0, cache=None, labels=None, normalise="utterance", transcripts=()
    )
    assert opened.name == corpus


def test_a_part_of_timit_is_called_one(run: Callable[..., Result], tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "timit", sentences=3)
    given = ("--corpus", f"timit:{sample}", "--cache", tmp_path / "cache")
    printed = run("info", *given).output
    assert "a part of TIMIT, such as NLTK's sample: 16 speakers, 48 utterances" in printed
    assert "split by speakers with seed 0: 12 train, 2 valid, 2 test" in printed
    assert "12 utterances  12 speakers" in printed
    assert "with seed 5" in run("info", *given, "--corpus-seed", 5).output
