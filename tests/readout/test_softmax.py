"""The softmax readout against another solver, and its small parts by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize

import toys
from echolearn.readout import softmax
from echolearn.readout.collect import Task, collect, observed
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import column_squares
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset

X, LABELS = toys.labels(sequences=12, steps=(30, 60))
VALUES = toys.echoes(sequences=12, steps=(30, 60))[1]
CLASSES = [np.digitize(v[:, 0], [-0.4, 0.4]) for v in VALUES]
DATA = Dataset(X, CLASSES, 3, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 10, connections=4, input_scaling=0.5, bias_scaling=0.1, random_state=0)
TASK = Task()


def all_frames(data=DATA):
    H_c, labels, _, _ = observed(RESERVOIR, TASK, data.batch(range(len(data.X))))
    return H_c, labels


def objective(V, H_c, labels, strength):
    Z = H_c @ V
    top = Z.max(axis=1, keepdims=True)
    logs = Z - top - np.log(np.exp(Z - top).sum(axis=1, keepdims=True))
    P = np.exp(logs)
    penalised = np.vstack([V[:-1], 0 * V[-1:]])  # the intercept is free
    value = -logs[np.arange(len(labels)), labels].mean() + 0.5 * strength * (penalised**2).sum()
    return value, H_c.T @ (P - np.eye(P.shape[1])[labels]) / len(labels) + strength * penalised


@pytest.mark.parametrize("strength", [1e-2, 1e-4])
def test_descent_comes_to_the_minimum_that_lbfgs_finds(strength):
    H_c, labels = all_frames()
    s = collect(RESERVOIR, DATA, TASK)
    U = solve(s, 0.1, intercept=True)
    rng = np.random.default_rng(0)
    V = softmax.descend(RESERVOIR, DATA, TASK, s, softmax.WARM * U, strength, rng, rate=softmax.RATE)
    found = minimize(
        lambda v: [np.ravel(part) for part in objective(v.reshape(U.shape), H_c, labels, strength)],
        np.zeros(U.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
    )
    mine = objective(V, H_c, labels, strength)[0]
    start = objective(softmax.WARM * U, H_c, labels, strength)[0]
    assert found.fun - 1e-9 <= mine <= found.fun + 0.02 * (start - found.fun) + 1e-3


def test_cross_entropy_against_the_definition():
    H_c, labels = all_frames()
    V = np.random.default_rng(1).normal(size=(H_c.shape[1], 3))
    assert softmax.cross_entropy(RESERVOIR, DATA, TASK, V) == pytest.approx(objective(V, H_c, labels, 0.0)[0])


def test_probabilities_of_extreme_logits():
    P = softmax.probabilities(np.array([[1e4, 0.0, -1e4], [5.0, 5.0, 5.0]]))
    np.testing.assert_allclose(P, [[1, 0, 0], [1 / 3] * 3], atol=1e-15)


def test_mini_batches_are_about_2048_frames_of_all_the_data(monkeypatch):
    monkeypatch.setattr(softmax, "FRAMES", 50)
    total = int(DATA.lengths.sum())
    rng = np.random.default_rng(0)
    batches = list(softmax.mini_batches(RESERVOIR, DATA, TASK, rng, 40))
    assert len(batches) == 40
    assert all(25 <= len(labels) <= 100 for _, labels in batches)
    # one pass holds every frame once
    H_c, labels = all_frames()
    count, seen = 0, []
    for h, y in batches:
        seen.append(np.column_stack([h, y]))
        count += len(y)
        if count >= total:
            break
    assert count == total
    wanted = np.column_stack([H_c, labels])
    seen = np.concatenate(seen)
    np.testing.assert_allclose(seen[np.lexsort(seen.T)], wanted[np.lexsort(wanted.T)], rtol=1e-12, atol=1e-14)


def test_refit_lowers_the_held_out_cross_entropy():
    train, held = DATA.subset(range(9)), DATA.subset(range(9, 12))
    s = collect(RESERVOIR, train, TASK)
    U = solve(s, 0.1, intercept=True)
    V, strength = softmax.refit(RESERVOIR, train, TASK, s, held_out=held, rng=np.random.default_rng(0))
    before, after = (softmax.cross_entropy(RESERVOIR, held, TASK, W) for W in (softmax.WARM * U, V))
    assert after < before
    assert strength > 0


def test_refit_leaves_the_sums_alone():
    s = collect(RESERVOIR, DATA, TASK)
    G, Q = s.G.copy(), s.Q.copy()
    softmax.refit(RESERVOIR, DATA, TASK, s, held_out=None, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(s.G, G)
    np.testing.assert_array_equal(s.Q, Q)


@pytest.mark.parametrize(("unit", "zero"), [(1e-4, 0.0), (1e4, 0.0), (1.0, 300.0)])
def test_neither_units_nor_zeros_of_the_features_matter(unit, zero):
    """Linear units without a bias: H_c of other units is the same but for its scale and, once forgotten, its mean."""
    words = {"spectral_radius": 0.3, "bias_scaling": 0.0, "activation": "identity", "leak": 1.0}
    linear = Reservoir.random(2, 10, connections=4, **words, random_state=0)
    task = Task(washout=25)

    def found(data):
        s = collect(linear, data, task)
        V, strength = softmax.refit(linear, data, task, s, held_out=data, rng=np.random.default_rng(0))
        H_c = observed(linear, task, data.batch(range(len(data.X))))[0]
        return softmax.probabilities(H_c @ V), strength / column_squares(s).mean()

    (plain, strength), (other, other_strength) = (
        found(Dataset(moved, CLASSES, 3, True, np.dtype("float64"))) for moved in (X, [zero + unit * x for x in X])
    )
    assert other_strength == pytest.approx(strength, rel=1e-4)
    np.testing.assert_allclose(other, plain, atol=1e-3)
