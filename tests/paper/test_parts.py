"""Tests of the parts of a corpus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echolearn.paper.parts import CorpusParts, corpus_fingerprint
from echolearn.speech import Corpus, open_corpus
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
