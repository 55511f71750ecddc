"""Tests of fitted cells on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import toys
from echolearn import DeepESNClassifier, ESNClassifier
from echolearn.paper import phones, table1
from echolearn.paper.cells import CellStore, fit_fingerprint
from echolearn.paper.parts import CorpusParts
from echolearn.speech import Corpus
from echolearn.validation import Array

RESULT: Any = {"test_error": 0.5, "fingerprint": "f"}


@pytest.fixture(scope="module")
def network() -> ESNClassifier:
    X, _ = toys.echoes(sequences=4)
    _, y = toys.labels(sequences=4)
    return ESNClassifier(5, learn="none", readout="ridge", random_state=0).fit(X, y)


def test_a_saved_cell_is_found_and_its_checkpoints_are_gone(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, print)
    store.checkpoint("a", "f").mkdir()
    store.save("a", RESULT, network)
    assert store.find("a", "f") == RESULT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.safetensors"]
    assert store.load_model("a").hidden_units == 5


def test_a_cell_that_does_not_fit_is_not_found_and_the_reason_is_given(tmp_path: Path, network: ESNClassifier) -> None:
    notes: list[str] = []
    store = CellStore(tmp_path, notes.append)
    assert store.find("a", "f") is None
    assert notes == []
    store.save("a", RESULT, network)
    assert store.find("a", "another") is None
    assert "other settings or another corpus" in notes[-1]
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text().replace("0.5", "0.4"))
    assert store.find("a", "f") is None
    assert "is damaged" in notes[-1]


def test_a_cell_without_its_model_file_is_not_found(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, lambda text: None)
    store.save("a", RESULT, network)
    store.model_path("a").unlink()
    assert store.find("a", "f") is None


def test_removed_cells_leave_nothing_behind(tmp_path: Path, network: ESNClassifier) -> None:
    store = CellStore(tmp_path, print)
    store.save("a", RESULT, network)
    store.checkpoint("a", "f").mkdir()
    store.remove(["a", "b"])
    assert list(tmp_path.iterdir()) == []


def test_the_fingerprint_depends_on_settings_and_corpus() -> None:
    found = {fit_fingerprint(ESNClassifier(n), corpus) for n in (5, 6) for corpus in ("a", "b")}
    assert len(found) == 4
    assert fit_fingerprint(ESNClassifier(5), "a") in found


def test_the_fingerprint_of_a_fit_with_augmentation_is_that_of_another_process() -> None:
    """A function has another text in every process."""
    first, second = (fit_fingerprint(DeepESNClassifier(augment=lambda x, rng: x), "a") for _ in range(2))
    assert first == second != fit_fingerprint(DeepESNClassifier(), "a")


def test_learned_deep_networks_of_a_corpus_of_sound_are_fitted_with_its_augmentation(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def augment(x: Array, rng: np.random.Generator) -> Array:
        return x

    monkeypatch.setattr("echolearn.paper.cells.augmentation", lambda corpus: augment)
    parts, absent = CorpusParts.load(corpus), cast("Any", None)
    table = table1.Table1(corpus, table1.Plan(units=(5,)), parts, absent, absent)
    systems = phones.Phones(corpus, phones.PhonePlan(), parts, absent, absent, absent)
    for experiment in (table, systems):
        found = [(cell.column, experiment.estimator(cell)) for cell in experiment.plan.cells()]
        deep = {name: model.augment for name, model in found if isinstance(model, DeepESNClassifier)}
        assert [name for name, given in deep.items() if given is augment] == ["deep"]
