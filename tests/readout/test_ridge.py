"""The ridge readout by other methods: augmented least squares, explicit hat matrices, held-out errors by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import reference as ref
from echolearn.exceptions import ReadoutWarning
from echolearn.readout import ridge
from echolearn.readout.ridge import (
    Columns,
    calibration,
    choose_ridge,
    degrees_of_freedom,
    gram_eigenvalues,
    loss,
    solve,
    solve_dual,
    squared_error,
    temperature,
    warn_of_large_ridge,
)
from echolearn.readout.statistics import statistics_of

rng = np.random.default_rng(11)
H = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 2.0
T = rng.normal(size=(60, 3)) + 0.5 * H[:, :3] + 1.0
ONES = np.hstack([H, np.ones((60, 1))])


def statistics(H_c, T):
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
    np.testing.assert_allclose(solve(statistics(H, T), mu, intercept=False), augmented(H, T, mu, False), rtol=1e-7)
    np.testing.assert_allclose(solve(statistics(ONES, T), mu, intercept=True), augmented(ONES, T, mu, True), rtol=1e-6)


@pytest.mark.parametrize("mu", [1e-6, 0.3, 50.0])
def test_the_normal_equations_hold(mu):
    """H_c R' = -mu U in the paper's layout; the intercept's residual sums to zero."""
    U = solve(statistics(H, T), mu, intercept=False)
    np.testing.assert_allclose(H.T @ (H @ U - T), -mu * U, rtol=1e-6, atol=1e-8)
    U = solve(statistics(ONES, T), mu, intercept=True)
    np.testing.assert_allclose(H.T @ (ONES @ U - T), -mu * U[:-1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((ONES @ U - T).sum(axis=0), 0, atol=1e-8)


def test_the_intercept_is_not_penalised():
    """Moving all targets by a constant moves the intercept alone, however large the ridge."""
    for mu in (1.0, 1e9):
        before, after = (solve(statistics(ONES, T + c), mu, intercept=True) for c in (0.0, 7.0))
        np.testing.assert_allclose(after[:-1], before[:-1], rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(after[-1] - before[-1], 7.0, rtol=1e-9)


def test_the_loss_from_statistics_is_the_loss_from_data():
    U = rng.normal(size=(6, 3))
    R = ONES @ U - T
    assert squared_error(statistics(ONES, T), U) == pytest.approx((R * R).sum(), rel=1e-10)
    assert loss(statistics(ONES, T), U, 2.0, intercept=False) == pytest.approx((R * R).sum() + 2 * (U * U).sum())
    assert loss(statistics(ONES, T), U, 2.0, intercept=True) == pytest.approx((R * R).sum() + 2 * (U[:-1] ** 2).sum())


def test_the_solution_is_the_smallest_loss():
    for intercept, H_c in ((False, H), (True, ONES)):
        s = statistics(H_c, T)
        U = solve(s, 0.7, intercept=intercept)
        least = loss(s, U, 0.7, intercept=intercept)
        for _ in range(20):
            moved = U + 1e-3 * rng.normal(size=U.shape)
            assert loss(s, moved, 0.7, intercept=intercept) > least


PATH = [1e-3, 0.1, 1.0, 10.0, 100.0, 1e4]


def hat(H_c, mu, intercept):
    """The matrix that maps targets to fitted values, made column by column by another solver."""
    return H_c @ augmented(H_c, np.eye(len(H_c)), mu, intercept)


@pytest.mark.parametrize("intercept", [False, True])
def test_generalised_cross_validation_against_explicit_hat_matrices(intercept):
    noisy = T + 5 * rng.normal(size=T.shape)
    H_c = ONES if intercept else H
    mu, scores = choose_ridge(statistics(H_c, noisy), PATH, intercept=intercept)
    slow = []
    for m in PATH:
        S = hat(H_c, m, intercept)
        slow.append(60 * ((noisy - S @ noisy) ** 2).sum() / (60 - np.trace(S)) ** 2)
    np.testing.assert_allclose(scores, slow, rtol=1e-7)
    assert mu == PATH[int(np.argmin(slow))]


@pytest.mark.parametrize("intercept", [False, True])
def test_the_choice_on_held_out_data_is_that_of_the_explicit_errors(intercept):
    H_c = ONES if intercept else H
    train, test = slice(0, 30), slice(30, 60)
    noisy = T + 3 * rng.normal(size=T.shape)
    mu, scores = choose_ridge(
        statistics(H_c[train], noisy[train]), PATH, intercept=intercept, held_out=statistics(H_c[test], noisy[test])
    )
    slow = [
        ((H_c[test] @ augmented(H_c[train], noisy[train], m, intercept) - noisy[test]) ** 2).sum() / 30 for m in PATH
    ]
    np.testing.assert_allclose(scores, slow, rtol=1e-7)
    assert mu == PATH[int(np.argmin(slow))]


def test_noise_leads_to_a_larger_ridge_than_signal():
    X = rng.normal(size=(40, 20))
    clean = X @ rng.normal(size=(20, 1))
    noise = rng.normal(size=(40, 1))
    path = np.logspace(-6, 6, 13)
    assert choose_ridge(statistics(X, clean), path, intercept=False)[0] < 1e-3
    assert choose_ridge(statistics(X, noise), path, intercept=False)[0] > 1


def test_cross_validation_with_more_weights_than_frames_has_finite_scores():
    X, y = rng.normal(size=(10, 20)), rng.normal(size=(10, 1))
    mu, scores = choose_ridge(statistics(X, y), PATH, intercept=False)
    assert np.isfinite(scores).any()
    assert np.isfinite(solve(statistics(X, y), mu, intercept=False)).all()


def test_a_singular_gram_matrix_without_ridge_is_an_error_with_advice():
    twice = np.hstack([H, H[:, :1]])
    for H_c in (twice, H[:3], np.zeros((9, 2))):
        with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
            solve(statistics(H_c, T[: len(H_c)]), 0.0, intercept=False)


def test_a_ridge_too_small_for_the_states_warns_and_still_fits():
    big = 1e6 * np.hstack([H, H[:, :1], H[:, :2] - H[:, 2:4]])
    with pytest.warns(ReadoutWarning, match=r"ridge=1e-09 is too small.*a ridge of .* or more would avoid this"):
        U = solve(statistics(big, T), 1e-9, intercept=False)
    best = np.linalg.lstsq(H, T, rcond=None)[0]
    np.testing.assert_allclose(big @ U, H @ best, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_states_that_are_not_finite_are_an_error_with_advice(bad):
    broken = H.copy()
    broken[3, 2] = bad
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(FloatingPointError, match=r"NaN or infinity.*smaller steps"),
    ):
        solve(statistics(broken, T), 1.0, intercept=False)


def test_solving_does_not_change_the_statistics():
    s = statistics(ONES, T)
    G, Q = s.G.copy(), s.Q.copy()
    solve(s, 1.0, intercept=True)
    solve(s, 1.0, intercept=False)
    choose_ridge(s, PATH, intercept=True)
    np.testing.assert_array_equal(s.G, G)
    np.testing.assert_array_equal(s.Q, Q)


@pytest.mark.parametrize("mu", [0.0, 1e-8, 0.3])
def test_a_wide_gram_matrix_has_the_same_solution(mu, monkeypatch):
    U, V = solve(statistics(H, T), mu, intercept=False), solve(statistics(ONES, T), mu, intercept=True)
    monkeypatch.setattr(ridge, "MAX_COLUMNS_PER_THREAD", 1)
    np.testing.assert_allclose(solve(statistics(H, T), mu, intercept=False), U, rtol=1e-9)
    np.testing.assert_allclose(solve(statistics(ONES, T), mu, intercept=True), V, rtol=1e-9)


def test_a_wide_gram_matrix_has_the_same_errors(monkeypatch):
    monkeypatch.setattr(ridge, "MAX_COLUMNS_PER_THREAD", 1)
    for test in (
        test_a_singular_gram_matrix_without_ridge_is_an_error_with_advice,
        test_a_ridge_too_small_for_the_states_warns_and_still_fits,
        test_solving_does_not_change_the_statistics,
    ):
        test()
    test_states_that_are_not_finite_are_an_error_with_advice(np.nan)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_choice_for_a_wide_gram_matrix_is_that_of_the_explicit_errors(intercept, monkeypatch):
    monkeypatch.setattr(ridge, "MAX_COLUMNS_PER_THREAD", 1)
    test_the_choice_on_held_out_data_is_that_of_the_explicit_errors(intercept)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 100.0])
def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(mu):
    values = gram_eigenvalues(statistics(ONES, T))
    assert degrees_of_freedom(values, mu) == pytest.approx(np.trace(hat(ONES, mu, True)))
    assert degrees_of_freedom(np.append(values, 0.0), 0.0) == pytest.approx(6)


def test_a_ridge_above_most_sums_of_squares_warns():
    s = statistics(ONES, T)
    squares = np.sort(((H - H.mean(axis=0)) ** 2).sum(axis=0))
    warn_of_large_ridge(s, 0.99 * squares[2])  # two of five columns are below: no warning
    with pytest.warns(ReadoutWarning, match=r"larger than the sums of squares of 3 of 5 columns.*smaller ridge"):
        warn_of_large_ridge(s, 1.01 * squares[2])


def test_columns_ten_million_times_smaller_than_others_are_singular_without_a_ridge():
    for smaller in (1.1e-7, 1.9e-7):
        U = solve(statistics(np.diag([1.0, smaller]), np.eye(2)), 0.0, intercept=False)
        np.testing.assert_allclose(U, np.diag([1.0, 1 / smaller]), rtol=1e-6)
    with pytest.raises(ValueError, match="singular and ridge=0"):
        solve(statistics(np.diag([1.0, 0.9e-7]), np.eye(2)), 0.0, intercept=False)


# Ridge regression in its dual form


rng_leave_one_out = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(12, 40), (30, 6)])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_are_those_of_explicit_fits(shape, weighted):
    w = rng_leave_one_out.uniform(0.2, 3.0, shape[0]) if weighted else np.ones(shape[0])
    R, T = rng_leave_one_out.standard_normal(shape) * 3 + 1, rng_leave_one_out.standard_normal((shape[0], 2))
    columns = Columns.of(R, w)
    Z, M = columns.standardize(R), shape[1]
    for mu in (0.01, 1.0, 30.0):
        blocks = [np.array([0, 3, 4]), np.array([1, 7])]
        fit = solve_dual(Z @ Z.T / M, T, w, [mu / M], counted=np.ones(len(T)), blocks=blocks)
        expected = ref.left_out(Z, T, w, mu)
        np.testing.assert_allclose(fit.outputs, expected, atol=1e-9)
        others = [np.array([i]) for i in range(len(T)) if i not in (0, 1, 3, 4, 7)]
        in_blocks = ref.left_out(Z, T, w, mu, blocks + others)
        assert np.abs(in_blocks - expected).max() > 1e-3
        np.testing.assert_allclose(fit.block_outputs, in_blocks, atol=1e-9)
        assert fit.error == pytest.approx(w @ ((T - expected) ** 2).sum(axis=1) / w.sum())
        V, b = ref.ridge_fit(Z, T, w, mu)
        U = columns.unfold(Z.T @ fit.C / M, fit.mean)
        np.testing.assert_allclose(R @ U[:-1] + U[-1], Z @ V + b, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_rows_left_out_with_a_tiny_penalty(seed):
    """The constant has the eigenvalue 0 up to rounding errors, which a tiny penalty does not hide."""
    rng = np.random.default_rng(seed)
    R, T, w = np.repeat(rng.standard_normal((60, 100)), 2, axis=1), rng.standard_normal((60, 2)), np.ones(60)
    Z = Columns.of(R, w).standardize(R)
    fit = solve_dual(Z @ Z.T / 200, T, w, [1e-12 * 60], counted=w, blocks=[np.array([0, 3])])
    expected = ref.left_out(Z, T, w, 1e-3, [np.array([i]) for i in range(60)])  # as good as no penalty
    np.testing.assert_allclose(fit.outputs, expected, atol=1e-3)
    np.testing.assert_allclose(fit.block_outputs[1], expected[1], atol=1e-3)


def test_the_penalty_with_the_smallest_error_is_chosen():
    Z = rng_leave_one_out.standard_normal((40, 60))
    T = Z[:, :1] + 2 * rng_leave_one_out.standard_normal((40, 1))
    w, ridges = np.ones(40), [1e-3, 0.1, 1.0, 10.0, 1e4]
    Z -= Z.mean(axis=0)
    errors = [solve_dual(Z @ Z.T / 60, T, w, [ridge], counted=w).error for ridge in ridges]
    chosen = solve_dual(Z @ Z.T / 60, T, w, ridges, counted=w)
    assert chosen.ridge == ridges[int(np.argmin(errors))]
    assert 0 < np.argmin(errors) < 4  # neither end of the path


def test_rows_that_do_not_count_do_not_choose_the_penalty():
    """They are fitted to; if none counts, the penalty is the first."""
    rng = np.random.default_rng(0)
    Z, w, ridges = rng.standard_normal((40, 60)), np.ones(40), [1e-3, 0.1, 1.0, 10.0, 1e4]
    Z -= Z.mean(axis=0)
    T = np.where(np.arange(40)[:, None] < 20, 3 * Z[:, :1], 2 * rng.standard_normal((40, 1)))
    every, some = (solve_dual(Z @ Z.T / 60, T, w, ridges, counted=c) for c in (w, np.arange(40) < 20))
    errors = [((T - ref.left_out(Z, T, w, 60 * ridge))[:20] ** 2).sum() / 40 for ridge in ridges]
    assert some.ridge == ridges[int(np.argmin(errors))] != every.ridge
    assert some.error == pytest.approx(min(errors))
    assert solve_dual(Z @ Z.T / 60, T, w, ridges, counted=0 * w).ridge == 1e-3


def test_constant_columns_do_not_count():
    R = np.hstack(
        [
            rng_leave_one_out.standard_normal((10, 2)),
            np.full((10, 1), 1e6) + 1e-4 * rng_leave_one_out.standard_normal((10, 1)),
        ]
    )
    columns = Columns.of(R, np.ones(10))
    assert columns.count == 2
    assert (columns.standardize(R)[:, 2] == 0).all()


def test_columns_that_hardly_vary_count_less():
    """A deviation of 1e-4, which rounding of states may change by a hundredth, is not blown up to 1."""
    R = rng_leave_one_out.standard_normal((50, 2)) * [1.0, 1e-4]
    columns = Columns.of(R, np.ones(50))
    assert columns.count == 2
    np.testing.assert_allclose(columns.standardize(R).std(axis=0), [1.0, R[:, 1].std() / ridge.MIN_COLUMN_DEVIATION])


def test_temperature_has_the_smallest_cross_entropy_beside_its_usual_values():
    labels = rng_leave_one_out.integers(3, size=200)
    Y = np.eye(3)[labels] + rng_leave_one_out.standard_normal((200, 3))
    w = rng_leave_one_out.uniform(0.5, 2.0, 200)

    def loss(factor):
        logits = factor * Y
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        target = np.full((200, 3), 1 / 3 / 201)  # one more row belongs to all classes alike
        target[np.arange(200), labels] += 200 / 201
        usual = np.log(factor / (4 + np.log(2))) ** 2 / 0.5**2 / 2
        return -(w / w.mean() @ (target * logs).sum(axis=1)) + usual

    factor = temperature(Y, labels, w)
    assert loss(factor) < min(loss(0.97 * factor), loss(1.03 * factor))


def test_the_temperature_without_evidence_is_the_usual_one():
    """The only series of its class has outputs of readouts that have not seen the class."""
    Y = rng_leave_one_out.standard_normal((18, 18))
    assert temperature(Y, np.arange(18), np.ones(18)) == pytest.approx(4 + np.log(17))
    pairs = np.r_[np.arange(16), 16, 16]
    assert temperature(Y, pairs, np.ones(18)) != pytest.approx(4 + np.log(17))


def confused(count, seed):
    """Return outputs of three classes, of which the second is answered too rarely, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=count)
    Y = np.array([[0.8, 0.2, 0], [0.4, 0.2, 0.4], [0, 0.2, 0.8]])[labels]
    return Y + 0.1 * rng.standard_normal(Y.shape), labels


def test_calibration_has_the_smallest_cross_entropy_beside_its_penalty():
    """No change in any direction is better; the loss is written down here once more."""
    Y, labels = confused(60, 0)
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 2.0, 60)
    factor = temperature(Y, labels, w)

    def loss(A, b):
        logits = Y @ A + b
        target = np.full((60, 3), 1 / 3 / 61)
        target[np.arange(60), labels] += 60 / 61
        entropy = -(w / w.mean() * (target * special.log_softmax(logits, axis=1)).sum(axis=1)).sum()
        return entropy + 10 / 2 * ((A / factor - np.eye(3)) ** 2).sum() + 1 / 2 * (b**2).sum()

    A, b = calibration(Y, labels, w)
    for _ in range(20):
        dA, db = factor * 0.01 * rng.standard_normal((3, 3)), 0.01 * rng.standard_normal(3)
        assert loss(A, b) < min(loss(A + dA, b + db), loss(A - dA, b - db))


def test_a_class_between_two_others_is_answered():
    """One factor for all outputs never answers it."""
    Y, labels = confused(60, 0)
    Y_new, new = confused(500, 1)
    A, b = calibration(Y, labels, np.ones(60))
    assert (Y_new.argmax(axis=1) == new).mean() < 0.75
    assert ((Y_new @ A + b).argmax(axis=1) == new).mean() > 0.9


@pytest.mark.parametrize(("penalty", "noise"), [(1e-3, 1.0), (1e6, 0.1)], ids=["no penalty", "one factor"])
def test_other_penalties_are_worse_on_new_outputs(penalty, noise, monkeypatch):
    def log_loss():
        found = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            (Y, labels), (Y_new, new) = confused(30, seed), confused(500, seed + 100)
            Y, Y_new = Y + noise * rng.standard_normal(Y.shape), Y_new + noise * rng.standard_normal(Y_new.shape)
            A, b = calibration(Y, labels, np.ones(30))
            found.append(-special.log_softmax(Y_new @ A + b, axis=1)[np.arange(500), new].mean())
        return np.mean(found)

    own = log_loss()
    monkeypatch.setattr(ridge, "MIXING_RIDGE", penalty)
    monkeypatch.setattr(ridge, "BIAS_RIDGE", penalty)
    assert log_loss() > own


def test_calibration_without_evidence_is_the_usual_factor():
    A, b = calibration(rng_leave_one_out.standard_normal((18, 18)), np.arange(18), np.ones(18))
    np.testing.assert_array_equal(A, temperature(np.eye(18), np.arange(18), np.ones(18)) * np.eye(18))
    np.testing.assert_array_equal(b, 0)


def test_outputs_that_are_all_right_are_not_infinitely_sure():
    assert temperature(np.eye(2)[[0, 1, 0, 1]], np.array([0, 1, 0, 1]), np.ones(4)) < 10


# The Cholesky factor by halves against LAPACK's, whatever the sizes of halves and tiles


def positive(M):
    A = np.random.default_rng(M).normal(size=(M + 5, M))
    return A.T @ A


@settings(max_examples=40, deadline=None)
@given(M=st.integers(1, 40), small=st.integers(1, 12), tile=st.integers(1, 12), columns=st.integers(1, 9))
def test_the_factor_and_the_solution_are_those_of_lapack(M, small, tile, columns):
    G, Q = positive(M), np.random.default_rng(0).normal(size=(M, columns))
    L = G.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ridge, "MAX_LAPACK_ROWS", small)
        patch.setattr(ridge, "MAX_ROWS_PER_TILE", tile)
        ridge.factor_in_place(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(G), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(G @ ridge.solve_factored(L, Q), Q, atol=1e-6)


@pytest.mark.parametrize("where", [0, 9, 19])
def test_a_matrix_that_is_not_positive_definite_is_refused(where, monkeypatch):
    monkeypatch.setattr(ridge, "MAX_LAPACK_ROWS", 3)
    G = positive(20)
    G[where, where] = -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        ridge.factor_in_place(G)


@given(M=st.integers(1, 5000), most=st.integers(1, 600))
def test_equal_slices_cover_all_and_are_no_larger_than_allowed(M, most):
    found = ridge.equal_slices(M, most)
    assert [i for part in found for i in range(M)[part]] == list(range(M))
    assert all(0 < part.stop - part.start <= most for part in found)
