"""Tests of a fit with its errors, time and memory."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from echolearn import ESNClassifier
from echolearn.experiments.corpus_parts import CorpusParts
from echolearn.experiments.measured_fit import (
    confusion_counts,
    fit_and_test,
    peak_memory,
    planned_epochs,
    warnings_as_notes,
)
from echolearn.speech.corpus import Corpus


def test_the_result_describes_the_fitted_network(corpus: Corpus, tmp_path: Path) -> None:
    parts = CorpusParts.load(corpus)
    network = ESNClassifier(6, epochs=2, random_state=0)
    epochs: list[int] = []
    result = fit_and_test(
        network,
        parts,
        tmp_path / "checkpoint",
        on_epoch=lambda row: epochs.append(int(row["epoch"])),
        note=lambda text: None,
    )
    assert epochs == [1, 2]
    assert result["epochs"] == len(result["history"]) == 2
    assert result["settings"]["hidden_units"] == 6
    assert abs(1 - network.score(*parts.test) - result["test_error"]) < 1e-12
    assert sum(map(sum, result["confusion"])) == sum(map(len, parts.test[1]))


def test_networks_that_do_not_learn_have_no_epochs() -> None:
    assert planned_epochs(ESNClassifier(learn="none"), 10) == 0
    assert planned_epochs(ESNClassifier(epochs=7), 10) == 7
    assert planned_epochs(ESNClassifier(), 10) > 0


def test_confusions_by_hand() -> None:
    spoken = np.array(["aa_s2", "aa_s3", "b_s2", "b_s2"])
    recognised = np.array(["aa_s4", "b_s2", "b_s3", "b_s2"])
    assert confusion_counts(spoken, recognised, ("aa", "b")).tolist() == [[1, 1], [0, 2]]


def test_every_warning_becomes_one_note() -> None:
    notes: list[str] = []
    with warnings_as_notes(notes.append):
        warnings.warn("careful", stacklevel=1)
    assert notes == ["note: careful"]


def test_peak_memory_contains_what_was_allocated() -> None:
    with peak_memory() as peak:
        before = peak()
        block = np.ones(40_000_000, np.uint8)
        after = peak()
        del block
    assert before is not None
    assert after is not None
    assert after >= before
    assert after > 40
