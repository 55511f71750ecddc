"""Tests of the work behind the commands; tests/cli/test_main.py runs the commands themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNRegressor
from echolearn.experiments import commands
from echolearn.speech.corpus import Corpus
from echolearn.speech.labels import read_mlf
from smallcorpus import STATES


@pytest.fixture(scope="module")
def network(corpus: Corpus) -> ESNClassifier:
    names = np.array(corpus.state_names)
    X, y = corpus.part("train")
    network = ESNClassifier(10, learn="none", readout="ridge", random_state=0)
    return network.fit(list(X), [names[labels] for labels in y])


def test_an_evaluation_counts_frames(corpus: Corpus, network: ESNClassifier) -> None:
    result = commands.evaluate(network, corpus, "test")
    names = np.array(corpus.state_names)
    X, y = corpus.part("test")
    assert result.frames == sum(map(len, y))
    assert result.state_error == pytest.approx(1 - network.score(list(X), [names[labels] for labels in y]))
    assert result.phone_error <= result.state_error
    assert all(c.spoken != c.recognised for c in result.confusions)
    counts = [c.frames for c in result.confusions]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == round(result.phone_error * result.frames)  # three phones have only six confusions


def test_the_json_of_an_evaluation_has_the_names_of_earlier_versions(corpus: Corpus, network: ESNClassifier) -> None:
    content = json.loads(json.dumps(commands.evaluate(network, corpus, "valid").as_json()))
    assert list(content) == [
        "corpus",
        "synthetic",
        "part",
        "frames",
        "valid_error",
        "phone_error",
        "states_unknown_to_the_model",
        "confused",
    ]
    assert list(content["confused"][0]) == ["said", "heard", "frames"]


@pytest.mark.filterwarnings("ignore::echolearn.estimators.examination.PoorFitWarning")
def test_a_network_that_knows_no_state_of_the_corpus_is_refused(corpus: Corpus) -> None:
    X, y = corpus.part("train")
    other = ESNClassifier(5, learn="none", readout="ridge", random_state=0)
    other.fit(list(X), [np.array([f"other_s{label % 3 + 2}" for label in labels]) for labels in y])
    with pytest.raises(ValueError, match="knows none of the corpus's states: it knows other_s2, the corpus has aa_s2"):
        commands.evaluate(other, corpus, "test")


def test_a_network_of_another_kind_is_refused(tmp_path: Path) -> None:
    X = [np.random.default_rng(k).normal(size=(20, 2)) for k in range(3)]
    ESNRegressor(5, learn="none").fit(X, X).save(tmp_path / "r.safetensors")
    with pytest.raises(ValueError, match="is not a network for phone states"):
        commands.load_model(tmp_path / "r.safetensors")


def test_predictions_are_written_as_labels_or_as_probabilities(
    corpus: Corpus, network: ESNClassifier, tmp_path: Path
) -> None:
    names, X = commands.part_features(corpus, "test")
    commands.write_predictions(network, names, X, tmp_path / "x.mlf")
    labels = read_mlf(tmp_path / "x.mlf")
    assert len(labels) == len(names)
    for segments, x in zip(labels.values(), X, strict=True):
        assert segments[-1].end == pytest.approx(len(x) / 100)
    commands.write_predictions(network, names, X, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz", allow_pickle=False) as stored:
        np.testing.assert_allclose(stored["posteriors"].sum(axis=1), 1, rtol=1e-5)
        assert stored["lengths"].tolist() == [len(x) for x in X]
        assert set(stored["state_names"]) <= set(STATES)


def test_the_alignment_has_the_labels_of_the_corpus(corpus: Corpus, tmp_path: Path) -> None:
    commands.write_alignment(corpus, tmp_path / "a.mlf")
    first = next(iter(read_mlf(tmp_path / "a.mlf").values()))
    frames = [segment.name for segment in first for _ in range(round(100 * (segment.end - segment.start)))]
    assert frames == [corpus.state_names[label] for label in corpus.labels[0]]


def test_audio_files_given_twice_or_missing_are_all_reported(tmp_path: Path) -> None:
    with pytest.raises(commands.CorpusError, match="is given twice") as caught:
        commands.audio_features([tmp_path / "a.wav", tmp_path / "a.wav"])
    assert len(caught.value.problems) == 3
