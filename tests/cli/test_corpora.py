"""Tests of the corpus of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from echolearn.cli import corpora
from echolearn.exceptions import EspeakError
from echolearn.speech._feature_recipe import FeatureRecipe
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


@pytest.mark.parametrize(
    ("chosen", "own", "used"),
    [(None, "running", "running"), ("utterance", "running", "utterance"), (None, "none", "utterance")],
)
def test_features_are_normalised_as_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, own: str, used: str
) -> None:
    seen = []
    monkeypatch.setattr(corpora, "open_corpus", lambda *_, normalise, **__: seen.append(normalise))
    scale = (np.zeros(39), np.ones(39)) if own == "running" else None
    corpora.opened_corpus(
        FeatureRecipe(normalise=own, scale=scale),
        corpus="synthetic",
        frames=None,
        corpus_seed=0,
        cache=None,
        labels=None,
        normalise=chosen,
        transcripts=(),
    )
    assert seen == [used]


def test_a_part_of_timit_is_called_one(run: Callable[..., Result], tmp_path: Path) -> None:
    sample = write_sample(tmp_path / "timit", sentences=3)
    given = ("--corpus", f"timit:{sample}", "--cache", tmp_path / "cache")
    printed = run("info", *given).output
    assert "a part of TIMIT, such as NLTK's sample: 16 speakers, 48 utterances" in printed
    assert "split by speakers with seed 0: 12 train, 2 valid, 2 test" in printed
    assert "12 utterances  12 speakers" in printed
    assert "with seed 5" in run("info", *given, "--corpus-seed", 5).output
