"""A fitted network: its outputs by hand and in chunks of time, its error, and the average of several."""

from dataclasses import replace

import numpy as np
import pytest

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.readout import view as views
from echolearn.readout.network import Network, Readout, apply_readout, average, mean_error, probabilities
from echolearn.readout.view import ReadoutView, observe, stack
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.states import harvest
from toys import grouped

LENGTHS = [40, 13, 25, 7]
VIEWS = [ReadoutView(), ReadoutView(3, direct=False)]


def data_of(lengths=LENGTHS, *, n_out=2):
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    y = [rng.normal(size=(n, n_out)) for n in lengths]
    return Dataset(X, y, None, True, np.dtype(np.float64))


def network(view=ReadoutView(), *, N=9, seed=0, n_out=2, **more):  # noqa: B008
    reservoir = Reservoir.random(2, N, connections=3, leak=(0.2, 0.9), bias_scaling=0.1, random_state=seed, **more)
    U = np.random.default_rng(seed).normal(size=(view.rows(reservoir), n_out))
    return Network(reservoir, Readout(U, False, 0.1), view)


@pytest.mark.parametrize("view", VIEWS)
def test_outputs_are_the_readout_of_what_is_observed(view):
    """A prediction has outputs for the washout too."""
    net, data = network(view), data_of()
    for i, Y in enumerate(net.outputs(data)):
        seen = observe(net.reservoir, replace(view, washout=0), data.batch([i]))
        np.testing.assert_allclose(Y, seen.H_c @ net.readout.U, atol=1e-12)
        assert Y.shape == (LENGTHS[i], 2)


def test_outputs_that_are_fed_back_against_one_step_after_another():
    net, data = network(n_feedback=2, feedback_scaling=0.3), data_of()
    r = net.reservoir
    w = {**r.weights(), "W_rec": r.W_rec.toarray(), "leak": r.leak}
    for x, Y in zip(data.X, net.outputs(data), strict=True):
        np.testing.assert_allclose(Y, ref.run_with_feedback(w, x, net.readout.U, r.activation, direct=True), atol=1e-10)


def test_a_softmax_readout_feeds_back_probabilities():
    Y = np.random.default_rng(0).normal(size=(5, 3))
    U = np.zeros((4, 3))
    np.testing.assert_array_equal(Readout(U, True, 0.1).feed_back(Y), probabilities(Y))
    np.testing.assert_array_equal(Readout(U, False, 0.1).feed_back(Y), Y)


@pytest.mark.parametrize("esn", [ESNRegressor(20, learn="none"), ESNRegressor(20, learn="none", feedback=True)])
def test_predictions_of_a_long_sequence_are_the_same_in_chunks(esn, monkeypatch):
    data = data_of([300, 40, 50], n_out=3)
    whole = esn.fit(data.X, data.y).predict(data.X)
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 64)
    for one, other in zip(esn.predict(data.X), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_applying_a_readout_is_a_product_with_the_stacked_columns(direct, intercept):
    rng = np.random.default_rng(0)
    H, X = rng.normal(size=(20, 5)), rng.normal(size=(20, 2))
    U = rng.normal(size=(5 + 2 * direct + 1, 3))
    U[-1] *= intercept  # without an intercept, the last row is 0
    Y = apply_readout(H, X if direct else X[:, :0], U)
    np.testing.assert_allclose(Y, stack(H, X, direct=direct, intercept=intercept) @ U, atol=1e-12)


def test_probabilities_of_extreme_logits():
    P = probabilities(np.array([[1e4, 0.0, -1e4], [5.0, 5.0, 5.0]]))
    np.testing.assert_allclose(P, [[1, 0, 0], [1 / 3] * 3], atol=1e-15)


def squared(Y, T):
    return float(((Y - T) ** 2).sum())


@pytest.mark.parametrize(("view", "feedback"), [(view, feedback) for view in VIEWS for feedback in (False, True)])
def test_the_mean_error_is_that_of_the_outputs_after_the_washout(view, feedback):
    net = network(view, **({"n_feedback": 2, "feedback_scaling": 0.3} if feedback else {}))
    data = data_of()
    washout = view.washout
    pairs = [(Y[washout:], T[washout:]) for Y, T in zip(net.outputs(data), data.y, strict=True)]
    expected = sum(squared(Y, T) for Y, T in pairs) / sum(len(T) for _, T in pairs)
    assert mean_error(net, data, squared) == pytest.approx(expected)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("units", [(5,), (4, 7), (6, 6, 3)])
def test_the_average_of_networks_has_the_mean_of_their_outputs(view, units):
    networks = [network(view, N=N, seed=seed) for seed, N in enumerate(units)]
    data = data_of()
    one = average(networks)
    assert sum(units) == one.reservoir.N
    assert one.readout.statistics is None
    for Y, *parts in zip(one.outputs(data), *(net.outputs(data) for net in networks), strict=True):
        np.testing.assert_allclose(Y, np.mean(parts, axis=0), atol=1e-12)


def test_the_average_has_the_mean_ridge_and_strength():
    networks = [network(seed=seed) for seed in range(2)]
    ridges = [
        replace(net, readout=replace(net.readout, ridge=mu)) for net, mu in zip(networks, (0.1, 0.3), strict=True)
    ]
    assert average(ridges).readout.ridge == pytest.approx(0.2)
    assert average(ridges).readout.strength is None
    softmax = [
        replace(net, readout=replace(net.readout, softmax=True, strength=s))
        for net, s in zip(networks, (1.0, 3.0), strict=True)
    ]
    assert average(softmax).readout.strength == pytest.approx(2.0)
    assert average(softmax).readout.softmax


@pytest.mark.parametrize(("view", "feedback"), [(view, feedback) for view in VIEWS for feedback in (False, True)])
def test_the_mean_error_of_weighted_targets_is_a_weighted_mean(view, feedback):
    net = network(view, **({"n_feedback": 2, "feedback_scaling": 0.3} if feedback else {}))
    data = data_of()
    rng = np.random.default_rng(0)
    w = [rng.choice([0.0, 1.0, 3.0], size=len(x)) for x in data.X]
    w[0] = np.ones_like(w[0])
    rows = [
        (c, squared(y, t))
        for Y, T, W in zip(net.outputs(data), data.y, w, strict=True)
        for y, t, c in list(zip(Y, T, W, strict=True))[view.washout :]
    ]
    expected = sum(c * e for c, e in rows) / sum(c for c, _ in rows)
    missing = [np.where(c[:, None] > 0, t, np.nan) for c, t in zip(w, data.y, strict=True)]

    def loss(Y, T, w=None):
        return float((((Y - T) ** 2).sum(axis=1) * (1 if w is None else w)).sum())

    assert mean_error(net, replace(data, y=missing, weights=w), loss) == pytest.approx(expected)


# The states of a fitted network against those of its reservoir, one sequence at a time


X, VALUES = toys.echoes(sequences=9)
LABELS = toys.labels(sequences=9)[1]
HOWS = {
    "values": (ESNRegressor, {}, VALUES),
    "both directions": (ESNRegressor, {"bidirectional": True}, VALUES),
    "ensemble": (ESNClassifier, {"ensemble": 2}, LABELS),
    "washout": (ESNClassifier, {"washout": 2}, LABELS),
}


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_are_those_that_harvest_finds(how, dtype):
    kind, settings, y = how
    esn = kind(dtype=dtype, standardize=False, **grouped(toys.FAST, settings)).fit(X, y)
    states = esn.states(X)
    assert isinstance(states, list)
    for H, x in zip(states, X, strict=True):
        assert H.dtype == dtype
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x), atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("settings", [{}, {"readout": "ridge"}, {"direct": False}])
def test_a_network_with_feedback_sees_its_own_outputs(settings):
    esn = ESNClassifier(feedback=True, dtype="float64", standardize=False, **grouped(toys.FAST, settings)).fit(
        X, LABELS
    )
    softmax = esn.readout == "softmax"
    for H, x in zip(esn.states(X), X, strict=True):
        Y = esn.network_.readout.feed_back(outputs(esn, x)) if softmax else outputs(esn, x)
        np.testing.assert_allclose(H, harvest(esn.reservoir_, x, Y), atol=1e-9)
        seen = np.hstack(
            [H, x, np.ones((len(x), 1))] if esn.get_params()["learning__direct"] else [H, np.ones((len(x), 1))]
        )
        np.testing.assert_allclose(seen @ esn.network_.readout.U, outputs(esn, x), atol=1e-9)


def outputs(esn, x):
    """Return the outputs of both classes, of which decision_function gives the difference."""
    return esn.network_.outputs(Dataset([x], (), None, True, np.dtype("float64")))[0]


def test_states_come_in_the_form_of_X():
    esn = ESNRegressor(learn="none", **grouped(toys.FAST)).fit(X, VALUES)
    n = min(map(len, X))
    assert esn.states(X[0]).shape == (len(X[0]), 15)
    assert esn.states(np.stack([x[:n] for x in X])).shape == (9, n, 15)
    joined = esn.states(np.concatenate(X), lengths=[len(x) for x in X])
    np.testing.assert_allclose(joined, np.concatenate(esn.states(X)), atol=1e-6)
    with pytest.raises(ValueError, match="features"):
        esn.states(np.zeros((5, 3)))


def test_long_sequences_are_run_in_chunks(monkeypatch):
    esn = ESNRegressor(dtype="float64", **grouped(toys.FAST)).fit(X, VALUES)
    x = np.concatenate(X)
    whole = esn.states(x)
    monkeypatch.setattr(views, "MAX_FRAMES_PER_PASS", 7)
    np.testing.assert_allclose(esn.states(x), whole, atol=1e-12)


def test_standardised_inputs_and_frames_before_them():
    esn = ESNRegressor(dtype="float64", **grouped(toys.FAST)).fit(X, VALUES)
    for H, x in zip(esn.states(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(esn.reservoir_, (x - esn.input_mean_) / esn.input_scale_), atol=1e-12)
    parts = [x[:5] for x in X], [x[5:] for x in X]
    for H, whole in zip(esn.states(parts[1], warm_up=parts[0]), esn.states(X), strict=True):
        np.testing.assert_allclose(H, whole[5:], atol=1e-12)


@pytest.mark.parametrize("feedback", [False, True])
def test_what_follows_a_series_continues_its_state(feedback):
    x, y = np.concatenate(X), np.concatenate(VALUES)
    esn = ESNRegressor(dtype="float64", feedback=feedback, washout=3, **grouped(toys.FAST)).fit(x[:100], y[:100])
    H, answers = esn.states(x[100:]), esn.predict(x[100:])
    seen = np.hstack([H, (x[100:] - esn.input_mean_) / esn.input_scale_])
    outputs = seen @ esn.readout_weights_ + esn.intercept_
    np.testing.assert_allclose(outputs * esn.target_scale_ + esn.target_mean_, answers, atol=1e-9)
    cold = esn.states(x[100:], warm_up="cold")
    assert np.abs(cold[0] - H[0]).max() > 1e-3
