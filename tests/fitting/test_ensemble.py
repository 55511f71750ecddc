"""Ensembles: one network that answers as the mean of several."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import toys
from echolearn import ESNClassifier, load
from echolearn.execution.threads import map_in_order
from echolearn.fitting.parameters import flat_settings
from threadpools import thread_pool
from toys import grouped

X, LABELS = toys.labels(sequences=8)
HOW = {**toys.FAST, "hidden_units": 21, "ensemble": 3, "refine_epochs": 1}


def fitted_one_by_one(esn, X, y):
    """Yield the networks of an ensemble, each fitted as a classifier of its own on one worker thread."""
    params = flat_settings(esn)
    seeds = np.random.default_rng(esn.random_state).integers(2**31, size=esn.ensemble)
    parts = np.array_split(np.arange(esn.hidden_units), esn.ensemble)
    for seed, units in zip(seeds, parts, strict=True):
        state = None if params["initial_state"] is None else params["initial_state"][units]
        own = {"hidden_units": len(units), "ensemble": 1, "random_state": int(seed), "initial_state": state}
        yield from map_in_order(lambda alone: alone.fit(X, y), [ESNClassifier(**grouped({**params, **own}))])


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_an_ensemble_answers_as_the_mean_of_networks_fitted_one_by_one(readout):
    state = np.linspace(-0.5, 0.5, 22)
    how = {**HOW, "hidden_units": 22, "readout": readout, "dtype": "float64"}
    esn = ESNClassifier(random_state=5, **grouped(how, initial_state=state)).fit(X, LABELS)
    parts = list(fitted_one_by_one(esn, X, LABELS))
    assert [part.hidden_units for part in parts] == [8, 7, 7]
    assert len({part.random_state for part in parts}) == 3
    mean = np.mean([np.concatenate(part.decision_function(X)) for part in parts], axis=0)
    np.testing.assert_allclose(np.concatenate(esn.decision_function(X)), mean, atol=1e-12)
    assert esn.recurrent_weights_.shape == (22, 22)
    np.testing.assert_array_equal(
        esn.recurrent_weights_.data, np.concatenate([part.recurrent_weights_.data for part in parts])
    )
    assert [row["network"] for row in esn.history_] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    errors = [row["error"] for part in parts for row in part.history_]
    assert [row["error"] for row in esn.history_] == errors
    refined = [row["cross_entropy"] for part in parts for row in part.refinement_]
    assert [row["cross_entropy"] for row in esn.refinement_] == refined
    assert len(refined) == (3 if readout == "softmax" else 0)


def test_an_ensemble_has_the_same_bits_on_one_core(monkeypatch):
    """Its networks sum the gradients of a mini-batch as on one of several cores."""
    monkeypatch.setattr("echolearn.sequences.batch.MIN_STATES_FOR_TWO_THREADS", 1)
    X, y = toys.labels(sequences=40)
    one, several = (fitted_on(cores, X, y) for cores in (1, 2))
    assert one.network_.readout.U.tobytes() == several.network_.readout.U.tobytes()


def fitted_on(cores, X, y):
    """Return an ensemble that learned from mini-batches on so many cores."""
    with thread_pool(cores):
        return ESNClassifier(24, ensemble=2, epochs=2, random_state=0, learning={"batch_size": 20}).fit(X, y)


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_fixed_networks_form_an_ensemble_too(readout):
    how = {**HOW, "learn": "none", "readout": readout, "dtype": "float64"}
    esn = ESNClassifier(**grouped(how)).fit(X, LABELS)
    parts = list(fitted_one_by_one(esn, X, LABELS))
    mean = np.mean([np.concatenate(part.decision_function(X)) for part in parts], axis=0)
    np.testing.assert_allclose(np.concatenate(esn.decision_function(X)), mean, atol=1e-12)
    learned = ESNClassifier(**grouped({**how, "learn": "both"})).fit(X, LABELS)
    np.testing.assert_array_equal(esn.recurrent_weights_.indices, learned.recurrent_weights_.indices)
    assert esn.history_ == []


def test_an_ensemble_is_saved_and_loaded_like_any_other(tmp_path):
    esn = ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    esn.save(tmp_path / "model.safetensors")
    for a, b in zip(load(tmp_path / "model.safetensors").predict_proba(X), esn.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_ensemble_resumes_from_a_checkpoint(tmp_path):
    straight = ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    seen = []

    def press(row):
        seen.append(row["epoch"])
        if len(seen) == 5:
            raise KeyboardInterrupt

    stopped = ESNClassifier(**grouped(HOW))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, LABELS, checkpoint=tmp_path, callback=press)
    assert stopped.recurrent_weights_.shape[0] in (14, 21)  # the networks that had begun
    assert np.concatenate(stopped.predict(X)).shape == np.concatenate(LABELS).shape
    resumed = ESNClassifier(**grouped(HOW)).fit(
        X, LABELS, checkpoint=tmp_path, callback=lambda row: seen.append(row["epoch"])
    )
    assert 5 < len(seen) <= 9  # no epoch twice
    np.testing.assert_array_equal(resumed.network_.readout.U, straight.network_.readout.U)


def test_when_one_network_fails_no_other_works_on_in_the_background():
    """It would write to the checkpoint of the next fit."""
    running = []

    def fail(row):
        if row["network"] == 1:
            raise OSError("no space left")
        running.append(row["epoch"])

    with pytest.raises(OSError, match="no space left"):
        ESNClassifier(**grouped({**HOW, "epochs": 200})).fit(X, LABELS, callback=fail)
    seen = len(running)
    assert seen < 200
    ESNClassifier(**grouped(HOW)).fit(X, LABELS)
    assert len(running) == seen


def test_other_data_are_refused_in_every_block(tmp_path):
    ESNClassifier(**grouped(HOW)).fit(X, LABELS, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another fit"):
        ESNClassifier(**grouped({**HOW, "spectral_radius": 0.5})).fit(X, LABELS, checkpoint=tmp_path)


def test_many_units_are_one_connected_reservoir_unless_an_ensemble_is_asked_for():
    how = {**toys.FAST, "hidden_units": 500, "epochs": 1, "refine_epochs": 0, "readout": "ridge"}
    for ensemble, parts in ((1, 1), (2, 2)):
        esn = ESNClassifier(ensemble=ensemble, **grouped(how)).fit(X, LABELS)
        assert connected_components(esn.recurrent_weights_, connection="weak")[0] == parts
