"""Weights from and to reservoirpy: the same states and outputs. With plain arrays where it is not installed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, Reservoir, SeriesRegressor, load
from echolearn.interop.reservoirpy import from_reservoirpy, to_reservoirpy
from echolearn.states import harvest

REASON = "needs reservoirpy, which only the interop environment has (make interop)"


def series(steps=80, features=2, seed=0):
    return np.random.default_rng(seed).normal(size=(steps, features))


def plain_node(**changes):
    """Return the arrays of a reservoirpy node, without reservoirpy."""
    rng = np.random.default_rng(1)
    given = {
        "Win": sparse.csr_array(rng.normal(size=(7, 2))),
        "W": sparse.csr_array(0.3 * rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.5)),
        "bias": rng.normal(size=7),
        "lr": np.linspace(0.2, 1.0, 7),
        "activation": np.tanh,
    }
    return SimpleNamespace(**given | changes)


def stepped(node, X):
    """Return the states by reservoirpy's update rule, as its documentation states it."""
    x, states = np.zeros(7), []
    for u in X:
        x = (1 - node.lr) * x + node.lr * node.activation(node.W @ x + node.Win @ u + node.bias)
        states.append(x)
    return np.array(states)


@pytest.mark.parametrize("changes", [{}, {"bias": 0.0, "lr": 0.3}])
def test_plain_arrays_have_the_states_of_their_rule(changes):
    node, X = plain_node(**changes), series()
    np.testing.assert_allclose(harvest(from_reservoirpy(node), X), stepped(node, X), atol=1e-12, rtol=0)


def test_the_reservoir_is_a_copy():
    node = plain_node(Win=np.ones((7, 2)))
    reservoir = from_reservoirpy(node)
    node.Win[:] = 5
    assert (reservoir.W == 1).all()


def test_a_plain_model_with_the_inputs_first_has_its_outputs():
    """The rows of the readout follow the order of its parents; ours has the states first."""
    node, given, X = plain_node(), SimpleNamespace(), series()
    rng = np.random.default_rng(2)
    readout = SimpleNamespace(Wout=rng.normal(size=(9, 3)), bias=rng.normal(size=3), ridge=0.1)
    states = stepped(node, X)
    for parents, seen in (([node, given], [states, X]), ([given, node], [X, states])):
        edges = [(given, 0, node), *((parent, 0, readout) for parent in parents)]
        model = SimpleNamespace(nodes=[given, node, readout], edges=edges, parents=_Parents(readout, parents))
        esn = from_reservoirpy(model)
        expected = np.hstack(seen) @ readout.Wout + readout.bias
        np.testing.assert_allclose(esn.predict(X), expected, atol=1e-12, rtol=0)
        np.testing.assert_allclose(esn.stream().predict(X), expected, atol=1e-12, rtol=0)


class _Parents:
    """A mapping from one node to its parents; the stand-ins cannot be keys of a dict."""

    def __init__(self, node, parents):
        self.node, self.parents = node, parents

    def __getitem__(self, node):
        assert node is self.node
        return self.parents


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (plain_node(Win=lambda *_: None), "no matrices yet"),
        (plain_node(activation=np.sin), "its activation is sin; echolearn knows"),
        (SimpleNamespace(order=2), "has no Win and no W"),
        (type("IPReservoir", (), {})(), "leaks before its activation"),
        (SimpleNamespace(nodes=[]), "0 reservoirs and 0 readouts"),
        (SimpleNamespace(nodes=[plain_node(), SimpleNamespace(Wout=None)]), "not fitted"),
    ],
)
def test_what_cannot_be_taken_is_refused(node, says):
    with pytest.raises(ValueError, match=says):
        from_reservoirpy(node)


@pytest.mark.parametrize(
    ("fitted", "says"),
    [
        (lambda X: ESNRegressor(5, learn="none", feedback=True, dtype="float64").fit(X, X[:, 0]), "has feedback"),
        (lambda X: SeriesRegressor(5).fit([X, X, -X], [1.0, 2.0, 3.0]), "SeriesRegressor has no counterpart"),
        (lambda X: ESNForecaster(5, learn="none").fit(X), "no counterpart"),
        (lambda X: ESNRegressor(5), "no counterpart"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_handed_over_is_refused(fitted, says):
    with pytest.raises(ValueError, match=says):
        to_reservoirpy(fitted(series()))


def test_without_reservoirpy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "reservoirpy", None)
    with pytest.raises(ImportError, match=r"echolearn\[reservoirpy\]"):
        to_reservoirpy(Reservoir.random(1, 5, random_state=0))


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "identity"])
def test_a_node_has_the_same_states_both_ways(activation):
    nodes = pytest.importorskip("reservoirpy.nodes", reason=REASON)
    X = series()
    node = nodes.Reservoir(
        40, sr=0.8, lr=np.linspace(0.2, 1, 40), bias=nodes.reservoir.bernoulli, activation=activation, seed=3
    )
    theirs = node.run(X)
    reservoir = from_reservoirpy(node)
    np.testing.assert_allclose(harvest(reservoir, X), theirs, atol=1e-10, rtol=0)
    np.testing.assert_allclose(to_reservoirpy(reservoir).run(X), theirs, atol=1e-10, rtol=0)


def test_a_reservoir_with_an_initial_state_and_feedback_weights():
    pytest.importorskip("reservoirpy", reason=REASON)
    X, Y = series(), series(80, 1, seed=5)
    reservoir = Reservoir.random(2, 30, n_feedback=1, bias_scaling=0.2, leak=(0.1, 0.9), random_state=0)
    begin = np.linspace(-0.5, 0.5, 30)
    node = to_reservoirpy(reservoir.with_weights(initial_state=begin))
    beside = Reservoir(
        W=np.vstack([reservoir.W, reservoir.W_fb.T]),
        W_rec=reservoir.W_rec,
        activation="tanh",
        leak=reservoir.leak,
        bias=reservoir.bias,
        initial_state=begin,
    )
    both = np.hstack([X, Y])
    np.testing.assert_allclose(node.run(both), harvest(beside, both), atol=1e-10, rtol=0)


@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_a_fitted_model_predicts_the_same_here(direct, feedback, tmp_path):
    reservoirpy = pytest.importorskip("reservoirpy", reason=REASON)
    X, later = series(), series(60, seed=9)
    y = np.cumsum(X, axis=0) * 0.1
    model = reservoirpy.ESN(units=40, sr=0.5, ridge=1e-2, input_to_readout=direct, feedback=feedback, seed=1)
    model.fit(X, y)
    model.reset()
    theirs = model.run(later)
    esn = from_reservoirpy(model)
    np.testing.assert_allclose(esn.predict(later), theirs, atol=1e-10, rtol=0)
    esn.save(tmp_path / "model.safetensors")
    np.testing.assert_allclose(load(tmp_path / "model.safetensors").predict(later), theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize("direct", [False, True])
def test_a_fitted_regressor_predicts_the_same_there(direct):
    pytest.importorskip("reservoirpy", reason=REASON)
    X, later = 3 + 5 * series(), 3 + 5 * series(60, seed=9)
    y = 100 + np.cumsum(X, axis=0)
    esn = ESNRegressor(30, learning={"direct": direct}, epochs=3, dtype="float64").fit(X, y)
    theirs = to_reservoirpy(esn).run(later)
    np.testing.assert_allclose(theirs, esn.predict(later, warm_up="cold"), atol=1e-10 * np.abs(y).max(), rtol=0)


@pytest.mark.parametrize("readout", ["ridge", "softmax"])
def test_a_fitted_classifier_decides_the_same_there(readout):
    pytest.importorskip("reservoirpy", reason=REASON)
    X, later = series(), series(60, seed=9)
    y = np.where(X[:, 0] > 0, "up", "down")
    esn = ESNClassifier(30, readout=readout, epochs=3, dtype="float64").fit(X, y)
    scores = to_reservoirpy(esn).run(later)
    assert (esn.classes_[scores.argmax(axis=1)] == esn.predict(later, warm_up="cold")).all()
