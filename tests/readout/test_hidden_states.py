"""The states of a fitted network against those of its reservoir, one sequence at a time."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import observation
from echolearn.states import harvest

X, VALUES = toys.echoes(sequences=9)
LABELS = toys.labels(sequences=9)[1]
HOWS = {
    "values": (ESNRegressor, {}, VALUES),
    "both directions": (ESNRegressor, {"bidirectional": True}, VALUES),
    "ensemble": (ESNClassifier, {"ensemble": 2}, LABELS),
    "one label per sequence": (ESNClassifier, {"pooling": 2, "washout": 2}, ["a", "b", "c"] * 3),
}


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_are_those_that_harvest_finds(how, dtype):
    kind, settings, y = how
    esn = kind(**toys.FAST, **settings, dtype=dtype).fit(X, y)
    states = esn.states(X)
    assert isinstance(states, list)
    for H, x in zip(states, X, strict=True):
        assert H.dtype == dtype
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x), atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("settings", [{}, {"readout": "ridge"}, {"direct": False}])
def test_a_network_with_feedback_sees_its_own_outputs(settings):
    esn = ESNClassifier(**toys.FAST, feedback=True, dtype="float64", **settings).fit(X, LABELS)
    softmax = esn.readout == "softmax"
    for H, x in zip(esn.states(X), X, strict=True):
        Y = esn.network_.readout.feed_back(outputs(esn, x)) if softmax else outputs(esn, x)
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x, Y), atol=1e-9)
        seen = np.hstack([H, x, np.ones((len(x), 1))] if esn.direct else [H, np.ones((len(x), 1))])
        np.testing.assert_allclose(seen @ esn.network_.readout.U, outputs(esn, x), atol=1e-9)


def outputs(esn, x):
    """Return the outputs of both classes, of which decision_function gives the difference."""
    from echolearn.sequences.dataset import Dataset

    return esn.network_.outputs(Dataset([x], (), None, True, np.dtype("float64")))[0]


def test_states_come_in_the_form_of_X():
    esn = ESNRegressor(**toys.FAST, learn="none").fit(X, VALUES)
    n = min(map(len, X))
    assert esn.states(X[0]).shape == (len(X[0]), 15)
    assert esn.states(np.stack([x[:n] for x in X])).shape == (9, n, 15)
    joined = esn.states(np.concatenate(X), lengths=[len(x) for x in X])
    np.testing.assert_allclose(joined, np.concatenate(esn.states(X)), atol=1e-6)
    with pytest.raises(ValueError, match="features"):
        esn.states(np.zeros((5, 3)))


def test_long_sequences_are_run_in_chunks(monkeypatch):
    esn = ESNRegressor(**toys.FAST, dtype="float64").fit(X, VALUES)
    x = np.concatenate(X)
    whole = esn.states(x)
    monkeypatch.setattr(observation, "FRAMES", 7)
    np.testing.assert_allclose(esn.states(x), whole, atol=1e-12)
