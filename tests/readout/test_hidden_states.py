"""The states of a fitted network against those of its reservoir, one sequence at a time."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import observation
from echolearn.sequences.dataset import Dataset
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
    esn = kind(**toys.FAST, **settings, dtype=dtype, standardize=False).fit(X, y)
    states = esn.states(X)
    assert isinstance(states, list)
    for H, x in zip(states, X, strict=True):
        assert H.dtype == dtype
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x), atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("settings", [{}, {"readout": "ridge"}, {"direct": False}])
def test_a_network_with_feedback_sees_its_own_outputs(settings):
    esn = ESNClassifier(**toys.FAST, feedback=True, dtype="float64", standardize=False, **settings).fit(X, LABELS)
    softmax = esn.readout == "softmax"
    for H, x in zip(esn.states(X), X, strict=True):
        Y = esn.network_.readout.feed_back(outputs(esn, x)) if softmax else outputs(esn, x)
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x, Y), atol=1e-9)
        seen = np.hstack([H, x, np.ones((len(x), 1))] if esn.direct else [H, np.ones((len(x), 1))])
        np.testing.assert_allclose(seen @ esn.network_.readout.U, outputs(esn, x), atol=1e-9)


def outputs(esn, x):
    """Return the outputs of both classes, of which decision_function gives the difference."""
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


def test_standardised_inputs_and_frames_before_them():
    esn = ESNRegressor(**toys.FAST, dtype="float64").fit(X, VALUES)
    for H, x in zip(esn.states(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(esn.reservoir_, (x - esn.input_mean_) / esn.input_scale_), atol=1e-12)
    parts = [x[:5] for x in X], [x[5:] for x in X]
    for H, whole in zip(esn.states(parts[1], warm_up=parts[0]), esn.states(X), strict=True):
        np.testing.assert_allclose(H, whole[5:], atol=1e-12)


@pytest.mark.parametrize("feedback", [False, True])
def test_what_follows_a_series_continues_its_state(feedback):
    x, y = np.concatenate(X), np.concatenate(VALUES)
    esn = ESNRegressor(**toys.FAST, dtype="float64", feedback=feedback, washout=3).fit(x[:100], y[:100])
    H, answers = esn.states(x[100:]), esn.predict(x[100:])
    seen = np.hstack([H, (x[100:] - esn.input_mean_) / esn.input_scale_])
    outputs = seen @ esn.readout_weights_ + esn.intercept_
    np.testing.assert_allclose(outputs * esn.target_scale_ + esn.target_mean_, answers, atol=1e-9)
    cold = esn.states(x[100:], warm_up="cold")
    assert np.abs(cold[0] - H[0]).max() > 1e-3
