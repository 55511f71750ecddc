"""Ridge regression in its dual form: against as many fits as there are rows, and the choice of its penalty."""

import numpy as np
import pytest

import reference as ref
from echolearn.readout.leave_one_out import Columns, solve_dual, temperature

rng = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(12, 40), (30, 6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_are_those_of_explicit_fits(shape, weighted):
    w = rng.uniform(0.2, 3.0, shape[0]) if weighted else np.ones(shape[0])
    R, T = rng.standard_normal(shape) * 3 + 1, rng.standard_normal((shape[0], 2))
    columns = Columns.of(R, w)
    Z, M = columns.standardize(R), shape[1]
    for ridge in (0.01, 1.0, 30.0):
        fit = solve_dual(Z @ Z.T / M, T, w, [ridge / M])
        expected = ref.left_out(Z, T, w, ridge)
        np.testing.assert_allclose(fit.outputs, expected, atol=1e-9)
        assert fit.error == pytest.approx(w @ ((T - expected) ** 2).sum(axis=1) / w.sum())
        V, b = ref.ridge_fit(Z, T, w, ridge)
        U = columns.unfold(Z.T @ fit.C / M, fit.mean)
        np.testing.assert_allclose(R @ U[:-1] + U[-1], Z @ V + b, atol=1e-9)


def test_the_penalty_with_the_smallest_error_is_chosen():
    Z = rng.standard_normal((40, 60))
    T = Z[:, :1] + 2 * rng.standard_normal((40, 1))
    w, ridges = np.ones(40), [1e-3, 0.1, 1.0, 10.0, 1e4]
    Z -= Z.mean(axis=0)
    errors = [solve_dual(Z @ Z.T / 60, T, w, [ridge]).error for ridge in ridges]
    chosen = solve_dual(Z @ Z.T / 60, T, w, ridges)
    assert chosen.ridge == ridges[int(np.argmin(errors))]
    assert 0 < np.argmin(errors) < 4  # neither end of the path


def test_constant_columns_do_not_count():
    R = np.hstack([rng.standard_normal((10, 2)), np.full((10, 1), 1e6) + 1e-4 * rng.standard_normal((10, 1))])
    columns = Columns.of(R, np.ones(10))
    assert columns.count == 2
    assert (columns.standardize(R)[:, 2] == 0).all()


def test_temperature_has_the_smallest_cross_entropy():
    labels = rng.integers(3, size=200)
    Y = np.eye(3)[labels] + rng.standard_normal((200, 3))
    w = rng.uniform(0.5, 2.0, 200)

    def loss(factor):
        logits = factor * Y
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        target = np.full((200, 3), 1 / 203)
        target[np.arange(200), labels] += 200 / 203
        return -(w @ (target * logs).sum(axis=1))

    factor = temperature(Y, labels, w)
    assert loss(factor) < min(loss(0.97 * factor), loss(1.03 * factor))


def test_outputs_that_are_all_right_are_not_infinitely_sure():
    assert temperature(np.eye(2)[[0, 1, 0, 1]], np.array([0, 1, 0, 1]), np.ones(4)) < 10
