"""The readout that corrects forecasts: when it is used, and what it may see."""

import numpy as np

from echolearn.forecasting.correction import fit_correction, solve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))


def test_one_ridge_solution_is_the_normal_equations():
    T = RNG.normal(size=(300, 2))
    (D,) = solve([X], [T], np.array([0.5]))
    A, B = X - X.mean(axis=0), T - T.mean(axis=0)
    unit = np.linalg.eigvalsh(A.T @ A).mean()
    np.testing.assert_allclose(D[:-1], np.linalg.solve(A.T @ A + 0.5 * unit * np.eye(6), A.T @ B))
    np.testing.assert_allclose(D[-1], T.mean(axis=0) - X.mean(axis=0) @ D[:-1])


def test_noise_is_not_corrected():
    found = fit_correction(X, RNG.normal(size=(300, 4)), 4)
    assert not found.D.any()
    assert found.gain == 0


def test_what_can_be_known_is_corrected_with_caution():
    W = RNG.normal(size=(6, 4))
    T = X @ W + 0.1 * RNG.normal(size=(300, 4))
    found = fit_correction(X, T, 4)
    np.testing.assert_allclose(found.D[:-1], 0.6 * W, atol=0.15)
    assert found.gain > 0.5
    first, late = found.residuals[:150], found.residuals[150:]
    np.testing.assert_array_equal(first, T[:150])  # before the first cut, nothing is known of it
    assert np.abs(late).mean() < 0.6 * np.abs(T[150:]).mean()


def test_readouts_of_the_backtest_see_no_truth_after_their_cut():
    """An error that is constant from the middle on can not be foreseen there by horizons that end after it."""
    T = np.zeros((300, 8))
    T[143:150] = 100.0  # of rows whose truth, eight steps ahead, lies after the cut at 150
    found = fit_correction(X, T[:, 7:8].repeat(8, axis=1), 8)
    T_blind = T.copy()
    T_blind[143:150] = 0
    again = fit_correction(X, T_blind[:, 7:8].repeat(8, axis=1), 8)
    assert again.gain == 0
    np.testing.assert_array_equal(found.residuals[150:225, 7], 0.0)
