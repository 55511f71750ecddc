"""The readout by orthogonal factors: equal to the normal equations, and better where those cannot follow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from echolearn.exceptions import ReadoutWarning
from echolearn.readout.orthogonal import OrthogonalFactors
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import statistics_of


def rows(rng, K=60, M=9, n_out=2):
    H = rng.standard_normal((K, M)) * np.logspace(0, -2, M)
    return np.hstack([H, np.ones((K, 1))]), rng.standard_normal((K, n_out))


@pytest.mark.parametrize("mu", [1e-6, 0.1, 10.0])
def test_it_equals_the_normal_equations(mu):
    H_c, T = rows(np.random.default_rng(0))
    factors = OrthogonalFactors.of(H_c, T)
    U = factors.readout(mu)
    np.testing.assert_allclose(U, solve(statistics_of(H_c, T, 2), mu, intercept=True), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factors.residual(mu), H_c @ U - T, atol=1e-11)
    E = ((H_c @ U - T) ** 2).sum() + mu * (U[:-1] ** 2).sum()
    assert factors.loss(mu) == pytest.approx(E, rel=1e-10)
    P = np.random.default_rng(1).standard_normal(U.shape)
    penalty = np.diag([mu] * (len(U) - 1) + [0.0])
    adjoint, of_H = factors.adjoint(mu, P)
    np.testing.assert_allclose(adjoint, np.linalg.solve(H_c.T @ H_c + penalty, P), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(of_H, H_c @ adjoint, atol=1e-9)
    hat = H_c @ np.linalg.solve(H_c.T @ H_c + penalty, H_c.T)
    assert factors.degrees_of_freedom(mu) == pytest.approx(np.trace(hat), rel=1e-8)
    gcv = len(T) * ((H_c @ U - T) ** 2).sum() / (len(T) - np.trace(hat)) ** 2
    assert factors.cross_validation(mu) == pytest.approx(gcv, rel=1e-8)


def test_it_sees_directions_that_the_gram_matrix_has_lost():
    """Two columns that differ by 1e-9, whose difference is the target: the Gram matrix cannot tell them apart."""
    rng = np.random.default_rng(0)
    common, small = rng.standard_normal((2, 200))
    H_c = np.stack([common, common + 1e-9 * small, np.ones(200)], axis=1)
    T = small[:, None]
    factors = OrthogonalFactors.of(H_c, T)
    # The columns themselves are rounded to 1e-16 of 1, which is 1e-7 of their difference.
    assert np.abs(H_c @ factors.readout(1e-24) - T).max() < 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadoutWarning)
        U = solve(statistics_of(H_c, T, 1), 1e-24, intercept=True)
    assert np.abs(H_c @ U - T).max() > 0.1


def test_the_residual_is_orthogonal_to_the_states_at_its_own_precision():
    """As a difference of H_c U and T it would be so only at the precision of T: no basis for a gradient."""
    rng = np.random.default_rng(0)
    H_c, _ = rows(rng, K=400)
    T = H_c[:, :-1] @ rng.standard_normal((9, 1)) + 1e-13 * rng.standard_normal((400, 1))
    factors = OrthogonalFactors.of(H_c, T)
    ours, difference = factors.residual(0.0), H_c @ factors.readout(0.0) - T

    def aligned(R):
        return np.abs(factors.P.T @ R).max() / np.linalg.norm(R)

    assert aligned(ours) < 1e-14 < 1e-6 < aligned(difference)


def test_fewer_frames_than_columns_and_constant_columns():
    rng = np.random.default_rng(0)
    H_c = np.hstack([rng.standard_normal((5, 8)), np.full((5, 1), 3.0), np.ones((5, 1))])
    T = rng.standard_normal((5, 1))
    factors = OrthogonalFactors.of(H_c, T)
    np.testing.assert_allclose(H_c @ factors.readout(1e-20), T, atol=1e-8)
    assert np.isfinite(factors.readout(0.0)).all()


def test_states_that_are_not_finite_are_refused():
    H_c, T = rows(np.random.default_rng(0))
    H_c[3, 2] = np.inf
    with pytest.raises(FloatingPointError, match="NaN or infinity"):
        OrthogonalFactors.of(H_c, T)
