"""Readouts without an intercept: solved, chosen, learned, streamed and saved as if there were no column of ones."""

import numpy as np
import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor, load
from echolearn.readout import LMS, RLS, solver
from echolearn.states import harvest
from toys import grouped

X, LABELS = toys.labels(sequences=10)
VALUES = [y + 3.0 for y in toys.echoes(sequences=10)[1]]
X_ECHO = toys.echoes(sequences=10)[0]
FIXED = {"hidden_units": 12, "learn": "none", "dtype": "float64", "validation_fraction": 0.0, "fit_intercept": False}
FIXED["standardize"] = False


def seen(esn, X):
    """Return the states and inputs of all frames, side by side."""
    return np.vstack([np.hstack([harvest(esn.reservoir_, x), x]) for x in X])


def one_hot(labels, classes):
    return (np.concatenate(labels)[:, None] == classes).astype(float)


@pytest.mark.parametrize("ridge", [0.3, 1e-3])
def test_a_ridge_readout_is_that_of_the_normal_equations_and_of_reservoirpy(ridge):
    esn = ESNClassifier(readout="ridge", ridge=ridge, **grouped(FIXED)).fit(X, LABELS)
    H, T = seen(esn, X), one_hot(LABELS, esn.classes_)
    np.testing.assert_allclose(
        esn.readout_weights_, np.linalg.solve(H.T @ H + ridge * np.eye(H.shape[1]), H.T @ T), atol=1e-8
    )
    # reservoirpy's Ridge(fit_bias=False) adds up XX' and YX' and solves for the transposed weights
    XXT, YXT = H.T @ H, T.T @ H
    np.testing.assert_allclose(
        esn.readout_weights_.T, np.linalg.solve(XXT + ridge * np.eye(len(XXT)), YXT.T).T, atol=1e-8
    )
    np.testing.assert_array_equal(esn.intercept_, 0)


def test_an_intercept_changes_the_readout():
    with_one = ESNClassifier(readout="ridge", ridge=0.3, **grouped({**FIXED, "fit_intercept": True})).fit(X, LABELS)
    without = ESNClassifier(readout="ridge", ridge=0.3, **grouped(FIXED)).fit(X, LABELS)
    assert np.abs(with_one.intercept_).min() > 0
    assert np.abs(with_one.readout_weights_ - without.readout_weights_).max() > 1e-3


def test_the_ridge_is_chosen_without_an_intercept():
    """Generalised cross-validation with hat matrices, the degrees of freedom without that of an intercept."""
    ridges = [1e-3, 1e-1, 10.0, 1e3]
    esn = ESNRegressor(ridge=ridges, **grouped(FIXED)).fit(X_ECHO, VALUES)
    H = seen(esn, X_ECHO)
    T = (np.concatenate(VALUES) - esn.target_mean_) / esn.target_scale_
    scores = []
    for ridge in ridges:
        S = H @ np.linalg.solve(H.T @ H + ridge * np.eye(H.shape[1]), H.T)
        scores.append(len(H) * ((S @ T - T) ** 2).sum() / (len(H) - np.trace(S)) ** 2)
    assert esn.ridge_ == ridges[int(np.argmin(scores))]


HOWS = {
    "ridge": {"readout": "ridge"},
    "ridge, full batch, case 1": {"readout": "ridge", "batch_size": None, "case": 1},
    "softmax, refined": {"refine_epochs": 2},
    "ensemble": {"ensemble": 2, "refine_epochs": 1},
    "both directions": {"bidirectional": True, "readout": "ridge"},
    "feedback": {"feedback": True, "readout": "ridge"},
}


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_learned_networks_have_none_and_are_saved_without_it(how, tmp_path):
    esn = ESNClassifier(dtype="float64", **grouped({**toys.FAST, **how}, fit_intercept=False)).fit(X, LABELS)
    np.testing.assert_array_equal(esn.intercept_, 0)
    assert esn.score(X, LABELS) > 0.5
    esn.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.learning["fit_intercept"] is False
    assert again.network_.view.intercept is False
    np.testing.assert_array_equal(again.network_.readout.U, esn.network_.readout.U)
    np.testing.assert_allclose(np.concatenate(again.predict_proba(X)), np.concatenate(esn.predict_proba(X)), atol=1e-9)
    if not esn.bidirectional:
        streamed = np.concatenate([again.stream().predict_proba(x) for x in X])
        np.testing.assert_allclose(streamed, np.concatenate(esn.predict_proba(X)), atol=1e-4)


def test_large_networks_have_none(monkeypatch):
    """The iterative solver, for which a small network passes here."""
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 10)
    how = {**toys.FAST, "hidden_units": 12, "fit_intercept": False, "ridge": 0.5, "dtype": "float64"}
    how["standardize"] = False
    esn = ESNRegressor(**grouped(how)).fit(X_ECHO, VALUES)
    np.testing.assert_array_equal(esn.intercept_, 0)
    H = seen(esn, X_ECHO)
    T = (np.concatenate(VALUES) - esn.target_mean_) / esn.target_scale_
    U = np.linalg.solve(H.T @ H + 0.5 * np.eye(H.shape[1]), H.T @ T)
    best, found = (((H @ V - T) ** 2).sum() + 0.5 * (V**2).sum() for V in (U, esn.readout_weights_))
    assert found == pytest.approx(best, rel=0.01)
    softmax = ESNClassifier(**grouped({**how, "refine_epochs": 1})).fit(X, LABELS)
    np.testing.assert_array_equal(softmax.intercept_, 0)


def test_adding_sequences_is_fitting_them_all():
    whole = ESNRegressor(ridge=0.3, **grouped(FIXED)).fit(X_ECHO, VALUES)
    parts = ESNRegressor(ridge=0.3, **grouped(FIXED)).fit(X_ECHO[:5], VALUES[:5])
    before = parts.predict(X_ECHO)
    parts.partial_fit(X_ECHO[5:], VALUES[5:])
    np.testing.assert_array_equal(parts.intercept_, 0)
    assert np.abs(np.concatenate(before) - np.concatenate(parts.predict(X_ECHO))).max() > 1e-6
    # the targets' scale is that of the first call, and without an intercept their mean matters
    shifted = [(v - parts.target_mean_) / parts.target_scale_ for v in VALUES]
    H = seen(whole, X_ECHO)
    U = np.linalg.solve(H.T @ H + 0.3 * np.eye(H.shape[1]), H.T @ np.concatenate(shifted))
    np.testing.assert_allclose(parts.readout_weights_, U, atol=1e-8)


@pytest.mark.parametrize("online", [RLS(), LMS(0.5)])
def test_a_stream_that_learns_has_none(online):
    esn = ESNRegressor(ridge=0.3, **grouped(FIXED)).fit(X_ECHO[:5], VALUES[:5])
    stream = esn.stream(online=online)
    for x, y in zip(X_ECHO[5:], VALUES[5:], strict=True):
        stream.reset().learn(x, y)
    np.testing.assert_array_equal(stream.readout_weights[-1], 0)
    if isinstance(online, RLS):  # it ends where partial_fit does
        np.testing.assert_allclose(
            stream.readout_weights[:-1], esn.partial_fit(X_ECHO[5:], VALUES[5:]).readout_weights_, atol=1e-6
        )
    still = esn.stream(online=LMS()).learn(np.zeros((3, 2)), np.zeros((3, VALUES[0].shape[1])))
    assert np.isfinite(still).all()
