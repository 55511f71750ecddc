"""Eq. 4-9 by other roads: augmented least squares, explicit hat matrices, held-out errors by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.readout import statistics as readout
from echolearn.readout.observation import stack
from echolearn.readout.ridge import ReadoutWarning, choose_ridge, loss, solve, squared_error
from echolearn.readout.statistics import Statistics, add_in_tiles, residual, statistics_of

rng = np.random.default_rng(11)
H = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 2.0
T = rng.normal(size=(60, 3)) + 0.5 * H[:, :3] + 1.0
ONES = np.hstack([H, np.ones((60, 1))])


def sums(H_c, T):
    return statistics_of(H_c, T, T.shape[1])


def augmented(H, T, mu, intercept):
    """min ||HU - T||² + mu ||U||² as one tall least-squares problem; an intercept column has no penalty."""
    M = H.shape[1]
    penalty = np.sqrt(mu) * np.eye(M)
    if intercept:
        penalty = penalty[:-1]
    return np.linalg.lstsq(np.vstack([H, penalty]), np.vstack([T, np.zeros((len(penalty), T.shape[1]))]), rcond=None)[0]


@pytest.mark.parametrize("mu", [0.0, 1e-8, 1e-2, 1.0, 1e4])
def test_ridge_is_the_augmented_least_squares_solution(mu):
    np.testing.assert_allclose(solve(sums(H, T), mu, intercept=False), augmented(H, T, mu, False), rtol=1e-7)
    np.testing.assert_allclose(solve(sums(ONES, T), mu, intercept=True), augmented(ONES, T, mu, True), rtol=1e-6)


@pytest.mark.parametrize("mu", [1e-6, 0.3, 50.0])
def test_normal_equations(mu):
    """H_c R' = -mu U in the paper's layout; the intercept's residual sums to zero."""
    U = solve(sums(H, T), mu, intercept=False)
    np.testing.assert_allclose(H.T @ (H @ U - T), -mu * U, rtol=1e-6, atol=1e-8)
    U = solve(sums(ONES, T), mu, intercept=True)
    np.testing.assert_allclose(H.T @ (ONES @ U - T), -mu * U[:-1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((ONES @ U - T).sum(axis=0), 0, atol=1e-8)


def test_the_intercept_is_not_penalised():
    """Moving all targets by a constant moves the intercept alone, however large the ridge."""
    for mu in (1.0, 1e9):
        before, after = (solve(sums(ONES, T + c), mu, intercept=True) for c in (0.0, 7.0))
        np.testing.assert_allclose(after[:-1], before[:-1], rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(after[-1] - before[-1], 7.0, rtol=1e-9)


def test_sums_are_additive_and_scale():
    s = sums(ONES[:20], T[:20])
    s += sums(ONES[20:50], T[20:50])
    s += sums(ONES[50:], T[50:])
    whole = sums(ONES, T)
    for name in ("G", "Q", "tt", "n"):
        np.testing.assert_allclose(getattr(s, name), getattr(whole, name), rtol=1e-12)
        np.testing.assert_allclose(getattr(sums(ONES, T).scale(0.25), name), 0.25 * getattr(whole, name))


def test_sums_of_float32_states_are_float64():
    s = sums(ONES.astype(np.float32), T.astype(np.float32))
    assert s.G.dtype == s.Q.dtype == np.float64
    exact = ONES.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(s.G, exact.T @ exact)


def test_class_numbers_stand_for_rows_with_a_single_one():
    labels = rng.integers(0, 4, 60)
    rows = np.eye(5)[labels]  # the fifth class does not occur
    short, long = statistics_of(ONES, labels, 5), statistics_of(ONES, rows, 5)
    for name in ("G", "Q", "tt", "n"):
        np.testing.assert_allclose(getattr(short, name), getattr(long, name), rtol=1e-12, atol=1e-12)
    Y = rng.normal(size=(60, 5))
    np.testing.assert_array_equal(residual(Y.copy(), labels), Y - rows)
    np.testing.assert_array_equal(residual(Y.copy(), rows), Y - rows)


def test_loss_from_sums_is_the_loss_from_data():
    U = rng.normal(size=(6, 3))
    R = ONES @ U - T
    assert squared_error(sums(ONES, T), U) == pytest.approx((R * R).sum(), rel=1e-10)
    assert loss(sums(ONES, T), U, 2.0, intercept=False) == pytest.approx((R * R).sum() + 2 * (U * U).sum())
    assert loss(sums(ONES, T), U, 2.0, intercept=True) == pytest.approx((R * R).sum() + 2 * (U[:-1] ** 2).sum())


def test_the_solution_is_the_smallest_loss():
    for intercept, H_c in ((False, H), (True, ONES)):
        s = sums(H_c, T)
        U = solve(s, 0.7, intercept=intercept)
        least = loss(s, U, 0.7, intercept=intercept)
        for _ in range(20):
            moved = U + 1e-3 * rng.normal(size=U.shape)
            assert loss(s, moved, 0.7, intercept=intercept) > least


def test_stack():
    X = rng.normal(size=(60, 2))
    np.testing.assert_array_equal(stack(H, X, direct=True, intercept=True), np.hstack([H, X, np.ones((60, 1))]))
    np.testing.assert_array_equal(stack(H, X, direct=False, intercept=True), ONES)
    np.testing.assert_array_equal(stack(H, X, direct=True, intercept=False), np.hstack([H, X]))
    assert stack(H, X, direct=False, intercept=False) is H


PATH = [1e-3, 0.1, 1.0, 10.0, 100.0, 1e4]


def hat(H_c, mu, intercept):
    """The matrix that maps targets to fitted values, made column by column by another solver."""
    return H_c @ augmented(H_c, np.eye(len(H_c)), mu, intercept)


@pytest.mark.parametrize("intercept", [False, True])
def test_gcv_with_explicit_hat_matrices(intercept):
    noisy = T + 5 * rng.normal(size=T.shape)
    H_c = ONES if intercept else H
    mu, scores = choose_ridge(sums(H_c, noisy), PATH, intercept=intercept)
    slow = []
    for m in PATH:
        S = hat(H_c, m, intercept)
        slow.append(60 * ((noisy - S @ noisy) ** 2).sum() / (60 - np.trace(S)) ** 2)
    np.testing.assert_allclose(scores, slow, rtol=1e-7)
    assert mu == PATH[int(np.argmin(slow))]


@pytest.mark.parametrize("intercept", [False, True])
def test_held_out_choice_is_the_explicit_held_out_error(intercept):
    H_c = ONES if intercept else H
    train, test = slice(0, 30), slice(30, 60)
    noisy = T + 3 * rng.normal(size=T.shape)
    mu, scores = choose_ridge(
        sums(H_c[train], noisy[train]), PATH, intercept=intercept, held_out=sums(H_c[test], noisy[test])
    )
    slow = [
        ((H_c[test] @ augmented(H_c[train], noisy[train], m, intercept) - noisy[test]) ** 2).sum() / 30 for m in PATH
    ]
    np.testing.assert_allclose(scores, slow, rtol=1e-7)
    assert mu == PATH[int(np.argmin(slow))]


def test_noise_asks_for_more_ridge_than_signal():
    X = rng.normal(size=(40, 20))
    clean = X @ rng.normal(size=(20, 1))
    noise = rng.normal(size=(40, 1))
    path = np.logspace(-6, 6, 13)
    assert choose_ridge(sums(X, clean), path, intercept=False)[0] < 1e-3
    assert choose_ridge(sums(X, noise), path, intercept=False)[0] > 1


def test_gcv_with_more_weights_than_frames_stays_finite_somewhere():
    X, y = rng.normal(size=(10, 20)), rng.normal(size=(10, 1))
    mu, scores = choose_ridge(sums(X, y), PATH, intercept=False)
    assert np.isfinite(scores).any()
    assert np.isfinite(solve(sums(X, y), mu, intercept=False)).all()


def test_singular_gram_without_ridge_is_an_error_that_says_what_to_do():
    twice = np.hstack([H, H[:, :1]])
    for H_c in (twice, H[:3], np.zeros((9, 2))):
        with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
            solve(sums(H_c, T[: len(H_c)]), 0.0, intercept=False)


def test_a_ridge_that_vanishes_beside_the_states_warns_and_still_fits():
    big = 1e6 * np.hstack([H, H[:, :1], H[:, :2] - H[:, 2:4]])
    with pytest.warns(ReadoutWarning, match=r"ridge=1e-09 is too small.*a ridge of .* or more would avoid this"):
        U = solve(sums(big, T), 1e-9, intercept=False)
    best = np.linalg.lstsq(H, T, rcond=None)[0]
    np.testing.assert_allclose(big @ U, H @ best, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_states_that_are_not_finite_are_named(bad):
    broken = H.copy()
    broken[3, 2] = bad
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(FloatingPointError, match=r"NaN or infinity.*step_size"),
    ):
        solve(sums(broken, T), 1.0, intercept=False)


def test_solving_leaves_the_sums_alone():
    s = sums(ONES, T)
    G, Q = s.G.copy(), s.Q.copy()
    solve(s, 1.0, intercept=True)
    solve(s, 1.0, intercept=False)
    choose_ridge(s, PATH, intercept=True)
    np.testing.assert_array_equal(s.G, G)
    np.testing.assert_array_equal(s.Q, Q)


@settings(max_examples=30, deadline=None)
@given(
    M=st.integers(1, 12), tile=st.integers(1, 9), stacks=st.lists(st.integers(0, 7), max_size=4), classes=st.booleans()
)
def test_adding_tile_by_tile_is_adding(M, tile, stacks, classes):
    """G = Σ H_c'H_c in float64 of float32 states, symmetric, and as `sums` gives it."""
    rng = np.random.default_rng(M)
    s, witness = Statistics.zeros(M, 3), Statistics.zeros(M, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readout, "TILE", tile)
        for K in stacks:
            H_c = rng.normal(size=(K, M)).astype(np.float32)
            T = rng.integers(0, 3, K) if classes else rng.normal(size=(K, 3)).astype(np.float32)
            add_in_tiles(s, H_c, T)
            witness += statistics_of(H_c, T, 3)
        readout.mirror(s.G)
    for name in ("G", "Q", "tt", "n"):
        np.testing.assert_allclose(getattr(s, name), getattr(witness, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(s.G, s.G.T)


@pytest.mark.parametrize("mu", [0.0, 1e-8, 0.3])
def test_a_wide_gram_is_solved_alike(mu, monkeypatch):
    U, V = solve(sums(H, T), mu, intercept=False), solve(sums(ONES, T), mu, intercept=True)
    monkeypatch.setattr(readout, "WIDE", 1)
    np.testing.assert_allclose(solve(sums(H, T), mu, intercept=False), U, rtol=1e-9)
    np.testing.assert_allclose(solve(sums(ONES, T), mu, intercept=True), V, rtol=1e-9)


def test_a_wide_gram_fails_alike(monkeypatch):
    monkeypatch.setattr(readout, "WIDE", 1)
    for test in (
        test_singular_gram_without_ridge_is_an_error_that_says_what_to_do,
        test_a_ridge_that_vanishes_beside_the_states_warns_and_still_fits,
        test_solving_leaves_the_sums_alone,
    ):
        test()
    test_states_that_are_not_finite_are_named(np.nan)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_choice_for_a_wide_gram_is_the_explicit_held_out_error(intercept, monkeypatch):
    monkeypatch.setattr(readout, "WIDE", 1)
    test_held_out_choice_is_the_explicit_held_out_error(intercept)


def test_sample_precision_is_that_of_the_whole():
    H = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    s = statistics_of(H, np.ones((400, 1)), 1)
    limit = readout.DROWNED * float(np.trace(s.G)) / 6
    for mu in (0.5 * limit, 2 * limit):
        whole = readout.product_precision(s, mu, H.dtype)
        assert readout.sample_precision(H[:200], 400, mu) == whole
        assert (whole == np.float32) == (mu > limit)
