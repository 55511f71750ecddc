"""The softmax readout against another optimizer and another class of solver, and its parts by hand."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import toys
from echolearn.readout import softmax
from echolearn.readout.network import probabilities
from echolearn.readout.ridge import solve
from echolearn.readout.softmax import PreconditionedMomentum, cross_entropy, descend, fit_softmax, log_likelihood
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import collect
from echolearn.readout.view import Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset

X, LABELS = toys.labels(sequences=12, steps=(30, 60))
VALUES = toys.echoes(sequences=12, steps=(30, 60))[1]
CLASSES = [np.digitize(v[:, 0], [-0.4, 0.4]) for v in VALUES]
DATA = Dataset(X, CLASSES, 3, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 10, connections=4, input_scaling=0.5, bias_scaling=0.1, random_state=0)
TASK = Task()


def all_frames(data=DATA, task=TASK):
    seen = observe(RESERVOIR, task, data.batch(range(len(data.X))))
    return seen.H_c, seen.T


def ridge_fit(reservoir=RESERVOIR, data=DATA, task=TASK, mu=0.1):
    s = collect(reservoir, data, task)
    return ExactFit(solve(s, mu, intercept=True), mu, s)


def objective(V, H_c, labels, strength):
    Z = H_c @ V
    top = Z.max(axis=1, keepdims=True)
    logs = Z - top - np.log(np.exp(Z - top).sum(axis=1, keepdims=True))
    P = np.exp(logs)
    penalised = np.vstack([V[:-1], 0 * V[-1:]])  # the intercept is free
    value = -logs[np.arange(len(labels)), labels].mean() + 0.5 * strength * (penalised**2).sum()
    return value, H_c.T @ (P - np.eye(P.shape[1])[labels]) / len(labels) + strength * penalised


@pytest.mark.parametrize("task", [TASK, Task(intercept=False)])
@pytest.mark.parametrize("strength", [1e-2, 1e-4])
def test_descent_comes_to_the_minimum_that_lbfgs_finds(strength, task):
    H_c, labels = all_frames(task=task)
    fit = ridge_fit(task=task)
    U, rng = fit.U, np.random.default_rng(0)
    V = descend(RESERVOIR, DATA, task, fit, softmax.LOGIT_SPREAD * U, strength=strength, rng=rng)
    assert np.any(V[-1] != 0) == task.intercept
    found = minimize(
        lambda v: [np.ravel(part) for part in objective(v.reshape(U.shape), H_c, labels, strength)],
        np.zeros(U.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
    )
    mine = objective(V, H_c, labels, strength)[0]
    start = objective(softmax.LOGIT_SPREAD * U, H_c, labels, strength)[0]
    share = 0.02 if task.intercept else 0.1  # without an intercept the ridge readout is a worse start
    assert found.fun - 1e-9 <= mine <= found.fun + share * (start - found.fun) + 1e-3


def test_cross_entropy_against_the_definition():
    H_c, labels = all_frames()
    V = np.random.default_rng(1).normal(size=(H_c.shape[1], 3))
    assert cross_entropy(RESERVOIR, DATA, TASK, V) == pytest.approx(objective(V, H_c, labels, 0.0)[0])


def minibatches(data, task, steps):
    """Return the mini-batches of a descent, one after another."""
    rng, counts = np.random.default_rng(0), task.targets_per_sequence(data)
    drawn = softmax.draw_minibatches(data.lengths, counts, rng, steps)
    observed = data.map(partial(softmax.observe_minibatches, RESERVOIR, task), drawn)
    return [batch for some in observed for batch in some]


def test_mini_batches_are_about_2048_frames_of_all_the_data(monkeypatch):
    monkeypatch.setattr(softmax, "FRAMES_PER_BATCH", 50)
    total = int(DATA.lengths.sum())
    batches = minibatches(DATA, TASK, 40)
    assert len(batches) == 40
    assert all(25 <= len(labels) <= 100 for _, labels, _ in batches)
    # one pass holds every frame once
    H_c, labels = all_frames()
    count, seen = 0, []
    for h, y, w in batches:
        assert w is None
        seen.append(np.column_stack([h, y]))
        count += len(y)
        if count >= total:
            break
    assert count == total
    wanted = np.column_stack([H_c, labels])
    seen = np.concatenate(seen)
    np.testing.assert_allclose(seen[np.lexsort(seen.T)], wanted[np.lexsort(wanted.T)], rtol=1e-12, atol=1e-14)


def test_the_fit_lowers_the_held_out_cross_entropy():
    train, held = DATA.subset(range(9)), DATA.subset(range(9, 12))
    fit = ridge_fit(data=train)
    V, strength = fit_softmax(RESERVOIR, train, TASK, fit, held_out=held, rng=np.random.default_rng(0))
    before, after = (cross_entropy(RESERVOIR, held, TASK, W) for W in (softmax.LOGIT_SPREAD * fit.U, V))
    assert after < before
    assert strength > 0


def test_the_fit_does_not_change_the_statistics():
    fit = ridge_fit()
    G, Q = fit.statistics.G.copy(), fit.statistics.Q.copy()
    fit_softmax(RESERVOIR, DATA, TASK, fit, held_out=None, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(fit.statistics.G, G)
    np.testing.assert_array_equal(fit.statistics.Q, Q)


@pytest.mark.parametrize(("unit", "zero"), [(1e-4, 0.0), (1e4, 0.0), (1.0, 300.0)])
def test_neither_scale_nor_offset_of_the_features_matters(unit, zero):
    """Linear units without a bias: H_c of other units is the same but for its scale and, once forgotten, its mean."""
    words = {"spectral_radius": 0.3, "bias_scaling": 0.0, "activation": "identity", "leak": 1.0}
    linear = Reservoir.random(2, 10, connections=4, **words, random_state=0)
    task = Task(washout=25)

    def found(data):
        fit = ridge_fit(linear, data, task)
        V, strength = fit_softmax(linear, data, task, fit, held_out=data, rng=np.random.default_rng(0))
        H_c = observe(linear, task, data.batch(range(len(data.X)))).H_c
        return probabilities(H_c @ V), strength / fit.square

    (plain, strength), (other, other_strength) = (
        found(Dataset(moved, CLASSES, 3, True, np.dtype("float64"))) for moved in (X, [zero + unit * x for x in X])
    )
    assert other_strength == pytest.approx(strength, rel=1e-4)
    np.testing.assert_allclose(other, plain, atol=1e-3)


def test_preconditioned_momentum_against_the_plain_formula():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    P, V, velocity, strength = np.linalg.inv(A @ A.T + np.eye(4)), rng.normal(size=(4, 2)), np.zeros((4, 2)), 0.3
    descent = PreconditionedMomentum(V, lambda R: P @ R, strength, np.float64)
    for rate in (1.0, 0.5, 0.25):
        g = rng.normal(size=(4, 2))
        penalty = strength * V
        penalty[-1] = 0  # the intercept
        velocity = 0.9 * velocity + 0.1 * P @ (g + penalty)
        V = V - rate * velocity
        descent.step(g, rate)
        np.testing.assert_allclose(descent.V, V, rtol=1e-12)
    np.testing.assert_allclose(descent.velocity, velocity, rtol=1e-12)


def test_preconditioned_momentum_keeps_its_precision_and_its_start():
    V = np.ones((3, 2))
    descent = PreconditionedMomentum(V, lambda R: R, 0.1, np.float32)
    descent.step(np.ones((3, 2), np.float32), 1.0)
    assert descent.V.dtype == descent.velocity.dtype == np.float32
    np.testing.assert_array_equal(V, 1)


@pytest.mark.parametrize(("scores", "chosen"), [([3.0, 2.0, 2.5], 1), ([1.0, 2.0], 0), ([3.0, 2.0, 1.0], 2)])
def test_weaker_strengths_are_tried_until_the_held_out_cross_entropy_rises(scores, chosen, monkeypatch):
    starts, left = [], iter(scores)

    def solve_softmax(reservoir, data, view, fit, V, *, strength, rng, kept):
        starts.append(V)
        return np.full_like(V, len(starts))

    monkeypatch.setattr(softmax, "solve_softmax", solve_softmax)
    monkeypatch.setattr(softmax, "cross_entropy", lambda *_: next(left))
    fit, strengths = ridge_fit(), (30.0, 10.0, 3.0)
    rng = np.random.default_rng(0)
    V, strength = fit_softmax(RESERVOIR, DATA, TASK, fit, held_out=DATA, rng=rng, strengths=strengths)
    scale = fit.square / fit.n**2
    assert strength == strengths[chosen] * scale
    assert (chosen + 1 == V).all()
    first = softmax.LOGIT_SPREAD * solve(fit.statistics, strengths[0] * scale * fit.n, intercept=True)
    np.testing.assert_allclose(starts[0], first, rtol=1e-9)
    assert [start.flat[0] for start in starts[1:]] == list(range(1, len(starts)))  # each from where the last ended


def test_the_logarithm_of_a_probability_that_has_underflowed_is_finite():
    for dtype, least in ((np.float64, 1e-300), (np.float32, 1e-30)):
        logs = log_likelihood(np.array([[0.0, 1.0], [0.5, 0.5]], dtype), np.array([0, 1]))
        np.testing.assert_allclose(logs, np.log([least, 0.5]), rtol=1e-6)


def weighted_data(seed=0):
    """Return the data with weights, a third of them 0, where labels are -1."""
    rng = np.random.default_rng(seed)
    w = [rng.choice([0.0, 1.0, 4.0], size=len(x)) for x in X]
    y = [np.where(c > 0, labels, -1) for c, labels in zip(w, CLASSES, strict=True)]
    return Dataset(X, y, 3, True, np.dtype("float64"), weights=w)


def test_weighted_cross_entropy_is_that_of_repeated_targets():
    data = weighted_data()
    seen = observe(RESERVOIR, TASK, data.batch(range(len(X))))
    again = np.repeat(np.arange(len(seen.T)), seen.w.astype(int))
    V = np.random.default_rng(1).normal(size=(seen.H_c.shape[1], 3))
    assert (seen.T >= 0).all()
    expected = objective(V, seen.H_c[again], seen.T[again], 0.0)[0]
    assert cross_entropy(RESERVOIR, data, TASK, V) == pytest.approx(expected)


@pytest.mark.parametrize("strength", [1e-2, 1e-3])
def test_descent_of_weighted_targets_comes_to_the_minimum_of_logistic_regression(strength):
    data = weighted_data()
    fit = ridge_fit(data=data)
    start = softmax.LOGIT_SPREAD * fit.U
    V = descend(RESERVOIR, data, TASK, fit, start, strength=strength, rng=np.random.default_rng(0))
    seen = observe(RESERVOIR, TASK, data.batch(range(len(X))))
    H, w = seen.H_c[:, :-1], seen.w
    peer = LogisticRegression(C=1 / (strength * w.sum()), tol=1e-10, max_iter=5000).fit(H, seen.T, sample_weight=w)
    best = np.vstack([peer.coef_.T, peer.intercept_])

    def value(V):
        penalty = 0.5 * strength * (V[:-1] ** 2).sum()
        return softmax.entropy(probabilities(seen.H_c @ V), seen.T, w) / w.sum() + penalty

    assert value(best) - 1e-9 <= value(V) <= value(best) + 0.02 * (value(start) - value(best)) + 1e-3


def test_mini_batches_have_no_ignored_target_and_the_weights_of_the_others(monkeypatch):
    monkeypatch.setattr(softmax, "FRAMES_PER_BATCH", 50)
    data = weighted_data()
    ignored = [0 * w if i % 4 == 0 else w for i, w in enumerate(data.weights)]
    data = Dataset(X, data.y, 3, True, np.dtype("float64"), weights=ignored)
    for _, labels, w in minibatches(data, TASK, 30):
        assert len(labels) == len(w) > 0
        assert (labels >= 0).all()
        assert (w > 0).all()


@pytest.mark.parametrize("third", [0.8, 0.7])
def test_the_penalty_is_the_last_before_the_held_out_cross_entropy_no_longer_falls(third, monkeypatch):
    """Of 30, 10, 3, 1: 10 is chosen where 3 is no better, and 1 is not tried, although it would be the best of all."""
    fit, tried = ridge_fit(), []

    def scored(reservoir, data, view, V):
        assert data is held
        tried.append(V)
        return (0.9, 0.7, third, 0.1)[len(tried) - 1]

    train, held = DATA.subset(range(9)), DATA.subset(range(9, 12))
    monkeypatch.setattr(softmax, "cross_entropy", scored)
    strengths = (30.0, 10.0, 3.0, 1.0)
    how = {"held_out": held, "rng": np.random.default_rng(0), "strengths": strengths}
    V, strength = fit_softmax(RESERVOIR, train, TASK, fit, **how)
    assert len(tried) == 3
    assert V is tried[1]
    assert strength == pytest.approx(10 * fit.square / fit.n**2)


@pytest.mark.parametrize("rare", [0.0, 0.3])
def test_the_penalty_chosen_is_the_best_on_held_out_data(rare):
    """Every strength is solved on its own, by another optimizer; labels drawn by chance ask for more of a penalty."""
    rng = np.random.default_rng(3)
    y = [np.where(rng.random(len(c)) < rare, rng.integers(0, 3, len(c)), c) for c in CLASSES]
    data = Dataset(X, y, 3, True, np.dtype("float64"))
    train, held = data.subset(range(3)), data.subset(range(3, 12))
    fit = ridge_fit(data=train)
    scale = fit.square / fit.n**2
    (H_c, labels), U = all_frames(train), fit.U
    errors = {}
    for strength in softmax.SOFTMAX_STRENGTHS:
        found = minimize(
            lambda v, s=strength: [np.ravel(p) for p in objective(v.reshape(U.shape), H_c, labels, s * scale)],
            np.zeros(U.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "gtol": 1e-7},
        )
        errors[strength] = objective(found.x.reshape(U.shape), *all_frames(held), 0.0)[0]
    _, strength = fit_softmax(RESERVOIR, train, TASK, fit, held_out=held, rng=rng)
    assert strength / scale == pytest.approx(min(errors, key=errors.get))
