"""Tests of the parts of a corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import toyspeech
from echolearn.paper.parts import WARP_SPREAD, CorpusParts, augmentation, corpus_fingerprint
from echolearn.speech import Corpus, mfcc, open_corpus, warp_matrix
from echolearn.speech._augmentation import FACTOR_STEPS
from echolearn.speech._feature_recipe import FeatureRecipe
from smallcorpus import arrays, write


def test_every_utterance_is_in_its_part(corpus: Corpus) -> None:
    parts = CorpusParts.load(corpus)
    assert [len(part[0]) for part in (parts.train, parts.valid, parts.test)] == [16, 4, 4]
    assert parts.valid_known[0][0] is parts.valid[0][0]
    assert parts.phones == ("aa", "b", "sil")
    assert parts.notes == ()


def test_a_fit_is_not_given_states_that_no_training_frame_has(tmp_path: Path) -> None:
    given = arrays()
    labels, names = given["labels"].copy(), np.array([*given["state_names"], "zh_s2"])
    first_valid = int(given["lengths"][:4].sum())  # utterance 4 is the first of the validation part
    labels[first_valid] = len(names) - 1
    parts = CorpusParts.load(open_corpus(f"features:{write(tmp_path / 'x.npz', labels=labels, state_names=names)}"))
    assert len(parts.valid[0]) == 4
    assert len(parts.valid_known[0]) == 3
    assert "zh_s2" in parts.notes[0]


def test_a_missing_part_is_reported(corpus: Corpus) -> None:
    without = replace(corpus, split=tuple("train" if part == "valid" else part for part in corpus.split))
    with pytest.raises(ValueError, match="no utterances of the valid part"):
        CorpusParts.load(without)


def test_the_fingerprint_depends_on_every_part_of_a_corpus(tmp_path: Path) -> None:
    base = arrays()
    found = {corpus_fingerprint(open_corpus(f"features:{write(tmp_path / 'a.npz')}"))}
    for name in ("features", "labels", "split", "utterances"):
        changed = base[name].copy()
        if name in ("features", "labels"):
            changed[3] = changed[3] - 1 if (changed[3] > 0).all() else changed[3] + 1
        else:
            changed[[0, 5]] = changed[[5, 0]]
        found.add(corpus_fingerprint(open_corpus(f"features:{write(tmp_path / 'b.npz', **{name: changed})}")))
    assert len(found) == 5


@pytest.mark.parametrize("normalise", ["utterance", "corpus", "running"])
def test_training_utterances_of_sound_get_other_speakers(normalise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features become about those of warped cepstra, apart from their mean; every draw is another warp, and where they
    are normalised per utterance, another map of cepstra too."""
    sounds = {str(k): samples for k, (_, samples, _) in enumerate(toyspeech.speech())}
    monkeypatch.setattr("echolearn.paper.parts.read_audio", sounds.__getitem__)
    spoken = replace(toyspeech.corpus("running"), audio=tuple(sounds))
    recipe = FeatureRecipe(normalise=normalise, scale=None if normalise == "utterance" else spoken.recipe.scale)
    both = augmentation(replace(spoken, recipe=recipe))
    monkeypatch.setattr("echolearn.paper.parts.MAP_SPREAD", 0.0)
    augment = augmentation(replace(spoken, recipe=recipe))
    assert both is not None
    assert augment is not None
    cepstra = mfcc(toyspeech.speech()[0][1])
    x, distances = recipe.of_frames(cepstra), []
    for seed in range(10):
        factor = (1 + WARP_SPREAD) ** np.linspace(-1, 1, FACTOR_STEPS)[
            np.random.default_rng(seed).integers(FACTOR_STEPS)
        ]
        expected, found = recipe.of_frames(cepstra @ warp_matrix(factor).T), augment(x, np.random.default_rng(seed))
        distances.append([(one - expected).var(axis=0).sum() for one in (x, found)])
    unchanged, warped = np.mean(distances, axis=0)
    assert warped < 0.3 * unchanged
    assert len({augment(x, np.random.default_rng(seed)).tobytes() for seed in range(10)}) > 8
    mapped = [abs(both(x, np.random.default_rng(k)) - augment(x, np.random.default_rng(k))).max() for k in range(3)]
    assert (min(mapped) > 0.1) == (normalise == "utterance")


def test_features_of_unknown_kind_are_not_changed(corpus: Corpus) -> None:
    assert augmentation(corpus) is None
    frames = FeatureRecipe(audio=False, normalise="utterance")
    assert augmentation(replace(corpus, recipe=frames)) is None
