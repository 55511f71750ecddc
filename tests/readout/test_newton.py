"""The softmax readout of small data: its derivatives by differences, its minimum against scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import toys
from echolearn.readout import newton, softmax
from echolearn.readout.newton import SoftmaxProblem, minimise
from echolearn.readout.ridge import solve
from echolearn.readout.softmax import cross_entropy, fit_softmax, keep_rows, solve_softmax
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import collect
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from threadpools import thread_pool


def draw(K=400, M=6, classes=3, seed=0):
    """Draw rows with columns of different scales, an intercept, labels that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    H_c = np.hstack([rng.normal(size=(K, M - 1)) * np.geomspace(1, 0.03, M - 1), np.ones((K, 1))])
    labels = (H_c @ rng.normal(size=(M, classes)) * 3 + rng.gumbel(size=(K, classes))).argmax(axis=1)
    return rng, H_c, labels, rng.integers(0, 4, K).astype(float)


def by_gram(H_c, strength):
    P = np.linalg.inv(H_c.T @ H_c / len(H_c) + strength * np.eye(H_c.shape[1]))
    return lambda R: P @ R


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_and_curvature_are_the_differences_of_the_value(weighted):
    rng, H_c, labels, w = draw()
    problem = SoftmaxProblem([(H_c, labels, w if weighted else None)], 0.01)
    V, D, small = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), 1e-5
    E, gradient = problem.value_and_gradient(V)
    bent = problem.curvature(D)
    assert problem.value(V) == pytest.approx(E, rel=1e-12)
    slope = (problem.value(V + small * D) - problem.value(V - small * D)) / (2 * small)
    assert slope == pytest.approx(float(np.vdot(gradient, D)), rel=1e-6)
    ahead, behind = (problem.value_and_gradient(V + sign * small * D)[1] for sign in (1, -1))
    np.testing.assert_allclose(bent, (ahead - behind) / (2 * small), rtol=1e-5, atol=1e-8)


def test_weights_count_rows_as_often_as_they_say():
    rng, H_c, labels, w = draw()
    often = np.repeat(np.arange(len(w)), w.astype(int))
    once, copied = SoftmaxProblem([(H_c, labels, w)], 0.1), SoftmaxProblem([(H_c[often], labels[often], None)], 0.1)
    V = rng.normal(size=(6, 3))
    for mine, expected in zip(once.value_and_gradient(V), copied.value_and_gradient(V), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(once.curvature(V), copied.curvature(V), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("strength", [1e-1, 1e-4])
def test_the_minimum_is_the_one_of_scikit_learn(strength, dtype):
    _, H_c, labels, _ = draw(K=3000, M=12)
    problem = SoftmaxProblem([(H_c, labels, None)], strength)
    V = minimise([(H_c.astype(dtype), labels, None)], np.zeros((12, 3)), strength, by_gram(H_c, strength))
    other = LogisticRegression(C=1 / (strength * len(labels)), tol=1e-8, max_iter=2000).fit(H_c[:, :-1], labels)
    theirs = problem.value(np.vstack([other.coef_.T, other.intercept_]))
    assert problem.value(V) == pytest.approx(theirs, rel=1e-5)
    assert theirs < problem.value(np.zeros((12, 3))) - 0.05


def test_the_minimum_is_found_from_a_start_far_away():
    """A full step of Newton's method would not lower E there."""
    rng, H_c, labels, _ = draw()
    starts = 60 * rng.normal(size=(6, 3)), np.zeros((6, 3))
    far, near = (minimise([(H_c, labels, None)], V, 1e-3, by_gram(H_c, 1e-3)) for V in starts)
    problem = SoftmaxProblem([(H_c, labels, None)], 1e-3)
    assert problem.value(far) == pytest.approx(problem.value(near), rel=1e-5)


def test_blocks_of_rows_and_threads_do_not_change_the_result(monkeypatch):
    _, H_c, labels, w = draw()
    start = (np.zeros((6, 3)), 1e-2, by_gram(H_c, 1e-2))
    whole = minimise([(H_c, labels, w)], *start)
    monkeypatch.setattr(newton, "ROWS_PER_BLOCK", 37)
    found = []
    for count in (1, 2):
        with thread_pool(count):
            found.append(minimise([(H_c, labels, w)], *start))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], whole, rtol=1e-6, atol=1e-8)


X, _ = toys.labels(sequences=12, steps=(30, 60))
CLASSES = [np.digitize(v[:, 0], [-0.4, 0.4]) for v in toys.echoes(sequences=12, steps=(30, 60))[1]]
DATA = Dataset(X, CLASSES, 3, True, np.dtype("float64"))
RESERVOIR = Reservoir.random(2, 10, connections=4, input_scaling=0.5, bias_scaling=0.1, random_state=0)


def ridge_fit():
    s = collect(RESERVOIR, DATA, Task())
    return ExactFit(solve(s, 0.1, intercept=True), 0.1, s)


def test_kept_states_lead_where_streamed_ones_lead(monkeypatch):
    fit = ridge_fit()
    problem = SoftmaxProblem([rows for some in keep_rows(RESERVOIR, DATA, Task()) for rows in some], 1e-2)
    start = (RESERVOIR, DATA, Task(), fit, softmax.LOGIT_SPREAD * fit.U)
    kept = solve_softmax(*start, strength=1e-2, rng=np.random.default_rng(0))
    monkeypatch.setattr(softmax, "MAX_KEPT_NUMBERS", 0)
    assert keep_rows(RESERVOIR, DATA, Task()) == []
    streamed = solve_softmax(*start, strength=1e-2, rng=np.random.default_rng(0))
    assert problem.value(kept) <= problem.value(streamed) <= problem.value(kept) + 2e-3
    assert problem.value(kept) < problem.value(start[-1])


@pytest.mark.parametrize(("limit", "most"), [("MAX_KEPT_NUMBERS", 11), ("MAX_KEPT_PRODUCTS", 33)])
def test_states_are_kept_up_to_a_number_of_them(limit, most, monkeypatch):
    frames = int(DATA.lengths.sum())
    numbers = frames * (10 + 2 + 1) * most // 11
    monkeypatch.setattr(softmax, limit, numbers - 1)
    assert not keep_rows(RESERVOIR, DATA, Task())
    monkeypatch.setattr(softmax, limit, numbers)
    kept = keep_rows(RESERVOIR, DATA, Task())
    assert sum(len(labels) for some in kept for _, labels, _ in some) == frames


def test_the_strength_of_kept_states_is_the_best_on_held_out_data():
    train, held = DATA.subset(range(9)), DATA.subset(range(9, 12))
    fit = ridge_fit()
    strengths = (300.0, 3.0, 0.1)
    V, strength = fit_softmax(
        RESERVOIR, train, Task(), fit, held_out=held, rng=np.random.default_rng(0), strengths=strengths
    )
    scale = fit.square / fit.n**2
    others = [
        solve_softmax(RESERVOIR, train, Task(), fit, V, strength=s * scale, rng=np.random.default_rng(0))
        for s in strengths
    ]
    scores = [cross_entropy(RESERVOIR, held, Task(), other) for other in others]
    assert strength / scale == pytest.approx(strengths[int(np.argmin(scores))])


def test_large_logits_do_not_overflow():
    """Logits of 0 and 2,000: e^2000 is beyond float64, but the probabilities and the error are known."""
    H_c, labels = np.array([[1000.0], [-1000.0]]), np.array([0, 1])
    V = np.array([[1.0, -1.0]])
    problem = SoftmaxProblem([(H_c, labels, None)], 0.0)
    value, gradient = problem.value_and_gradient(V)
    assert value == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
