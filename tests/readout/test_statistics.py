"""G and Q against sums over frames by hand: additive, in float64, tile by tile, from class numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.readout import statistics
from echolearn.readout.statistics import (
    Statistics,
    add_in_tiles,
    column_squares,
    mirror,
    product_precision,
    residual,
    sample_precision,
    statistics_of,
)

rng = np.random.default_rng(11)
H_C = np.hstack([rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 2.0, np.ones((60, 1))])
T = rng.normal(size=(60, 3)) + 0.5 * H_C[:, :3] + 1.0
NAMES = ("G", "Q", "tt", "n")


def test_statistics_against_sums_over_frames():
    s = statistics_of(H_C, T, 3)
    np.testing.assert_allclose(s.G, sum(np.outer(h, h) for h in H_C), rtol=1e-12)
    np.testing.assert_allclose(s.Q, sum(np.outer(h, t) for h, t in zip(H_C, T, strict=True)), rtol=1e-10)
    assert s.tt == pytest.approx(sum(t @ t for t in T))
    assert s.n == 60
    assert s.mean_diagonal == pytest.approx(np.mean([H_C[:, i] @ H_C[:, i] for i in range(6)]))


def test_statistics_are_additive_and_scale():
    s = Statistics.zeros(6, 3)
    for rows in (slice(20), slice(20, 50), slice(50, None)):
        s += statistics_of(H_C[rows], T[rows], 3)
    whole = statistics_of(H_C, T, 3)
    for name in NAMES:
        np.testing.assert_allclose(getattr(s, name), getattr(whole, name), rtol=1e-12)
        np.testing.assert_allclose(
            getattr(statistics_of(H_C, T, 3).scale(0.25), name), 0.25 * getattr(whole, name), rtol=1e-12
        )


def test_statistics_of_float32_states_are_float64():
    s = statistics_of(H_C.astype(np.float32), T.astype(np.float32), 3)
    assert s.G.dtype == s.Q.dtype == np.float64
    exact = H_C.astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(s.G, exact.T @ exact)


def test_class_numbers_stand_for_rows_with_a_single_one():
    labels = rng.integers(0, 4, 60)
    rows = np.eye(5)[labels]  # the fifth class does not occur
    short, long = statistics_of(H_C, labels, 5), statistics_of(H_C, rows, 5)
    for name in NAMES:
        np.testing.assert_allclose(getattr(short, name), getattr(long, name), rtol=1e-12, atol=1e-12)
    Y = rng.normal(size=(60, 5))
    np.testing.assert_array_equal(residual(Y.copy(), labels), Y - rows)
    np.testing.assert_array_equal(residual(Y.copy(), rows), Y - rows)


@settings(max_examples=30, deadline=None)
@given(
    M=st.integers(1, 12), tile=st.integers(1, 9), stacks=st.lists(st.integers(0, 7), max_size=4), classes=st.booleans()
)
def test_adding_tile_by_tile_is_adding(M, tile, stacks, classes):
    """G = Σ H_c'H_c in float64 of float32 states, symmetric, and as `statistics_of` gives it."""
    rng = np.random.default_rng(M)
    s, witness = Statistics.zeros(M, 3), Statistics.zeros(M, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "TILE", tile)
        for K in stacks:
            H_c = rng.normal(size=(K, M)).astype(np.float32)
            T = rng.integers(0, 3, K) if classes else rng.normal(size=(K, 3)).astype(np.float32)
            add_in_tiles(s, H_c, T)
            witness += statistics_of(H_c, T, 3)
        mirror(s.G)
    for name in NAMES:
        np.testing.assert_allclose(getattr(s, name), getattr(witness, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(s.G, s.G.T)


def test_products_have_the_precision_of_the_states_where_the_ridge_hides_their_rounding():
    H = np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32)
    s = statistics_of(H, np.ones((400, 1)), 1)
    limit = statistics.DROWNED * float(np.trace(s.G)) / 6
    for mu in (0.5 * limit, 2 * limit):
        whole = product_precision(s, mu, H.dtype)
        assert sample_precision(H[:200], 400, mu) == whole
        assert (whole == np.float32) == (mu > limit)


def test_column_squares_are_sums_of_squares_about_the_mean():
    H = H_C[:, :-1]
    np.testing.assert_allclose(column_squares(statistics_of(H_C, T, 3)), ((H - H.mean(axis=0)) ** 2).sum(axis=0))
    constant = np.hstack([np.full((60, 1), 1e3), np.ones((60, 1))])
    assert 0 < column_squares(statistics_of(constant, T, 3))[0] < 1e-6  # nothing but rounding, and never negative


@pytest.mark.parametrize("labels", [True, False])
def test_weights_count_like_repeated_targets(labels):
    rng = np.random.default_rng(0)
    w = rng.integers(1, 4, len(H_C)).astype(float)
    targets = rng.integers(0, 3, len(H_C)) if labels else T
    again = np.repeat(np.arange(len(H_C)), w.astype(int))
    expected = statistics_of(H_C[again], targets[again], 3)
    found = statistics_of(H_C, targets, 3, w=w)
    tiled = Statistics.zeros(H_C.shape[1], 3)
    add_in_tiles(tiled, H_C, targets, w=w)
    mirror(tiled.G)
    for s in (found, tiled):
        for name in ("G", "Q", "tt", "n"):
            np.testing.assert_allclose(getattr(s, name), getattr(expected, name), rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(s.G, s.G.T)


def test_large_weights_require_float64_as_many_frames_do():
    H = H_C.astype(np.float32)
    mu = 1.0
    few, many = len(H), 10**9
    assert sample_precision(H, few, mu) == np.float32
    assert sample_precision(H, many, mu) == np.float64
    assert sample_precision(H, few, mu, np.full(len(H), 1e7)) == np.float64
