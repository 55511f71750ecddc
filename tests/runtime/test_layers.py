"""Layers at work: deep networks, and sequences that are cut into chunks."""

import numpy as np
import pytest

import exported
from echolearn import DeepESNClassifier, ESNRegressor
from exported import DOUBLE, LIMIT, assert_same
from toys import grouped


@pytest.mark.parametrize("ensemble", [1, 2])
def test_deep_networks(through_file, ensemble):
    deep = DeepESNClassifier(8, 3, ensemble=ensemble, epochs=20, dtype="float64").fit(exported.X, exported.LABELS)
    model = through_file(deep)
    assert_same(model.predict_proba(exported.X), deep.predict_proba(exported.X))
    stream = model.stream()
    answers = np.array([stream.step(frame) for frame in exported.X[0]])
    np.testing.assert_allclose(answers, deep.predict_proba(exported.X[0]), **LIMIT)


def test_long_sequences_are_run_in_chunks(through_file, monkeypatch):
    esn = ESNRegressor(20, feedback=True, **grouped(DOUBLE)).fit(exported.X, exported.VALUES)
    model = through_file(esn)
    monkeypatch.setattr("echolearn.runtime._layers.MAX_STATES_PER_CHUNK", 100)
    assert_same(model.predict(exported.X), esn.predict(exported.X))
