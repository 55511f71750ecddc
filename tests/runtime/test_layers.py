"""Layers at work: stacks, and sequences that are cut into chunks."""

import numpy as np

import exported
from echolearn import ESNClassifier, ESNRegressor, StackedClassifier
from exported import DOUBLE, LIMIT, assert_same
from toys import grouped


def test_stacks(through_file):
    layer = ESNClassifier(12, epochs=1, dtype="float64")
    stack = StackedClassifier([layer, layer], joint_epochs=0, sees="output+hidden").fit(exported.X, exported.LABELS)
    model = through_file(stack)
    assert_same(model.predict_proba(exported.X), stack.predict_proba(exported.X))
    stream = model.stream()
    answers = np.array([stream.step(frame) for frame in exported.X[0]])
    np.testing.assert_allclose(answers, stack.predict_proba(exported.X[0]), **LIMIT)


def test_long_sequences_are_run_in_chunks(through_file, monkeypatch):
    esn = ESNRegressor(20, feedback=True, **grouped(DOUBLE)).fit(exported.X, exported.VALUES)
    model = through_file(esn)
    monkeypatch.setattr("echolearn.runtime._layers.MAX_STATES_PER_CHUNK", 100)
    assert_same(model.predict(exported.X), esn.predict(exported.X))
