"""The compiled loops of deep layers beside plain ones, and each way back as the transpose of its way forward."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference.deep as ref
from echolearn.states import _scans as loops

LIMITS = {np.float64: 1e-12, np.float32: 1e-5}
DTYPES = pytest.mark.parametrize("dtype", LIMITS)


def shares(rng, m, dtype):
    """Return a, theta and what the loops take of them."""
    a, theta = rng.uniform(0.05, 0.97, m), rng.uniform(-np.pi, np.pi, m)
    return a, theta, [v.astype(dtype) for v in (a * np.cos(theta), a * np.sin(theta), 1 - a)]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    m=st.integers(1, 5),
    backward=st.integers(0, 5),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_scan_is_a_loop_over_complex_numbers(seed, lengths, m, backward, dtype):
    rng, f = np.random.default_rng([1, seed]), max(0, m - backward)
    a, theta, taken = shares(rng, m, dtype)
    U, h0 = rng.normal(size=(sum(lengths), 2 * m)), rng.normal(size=(len(lengths), 2 * m))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    h = U.astype(dtype)
    loops.scan(*taken, bounds, h0.astype(dtype), f, h)
    parts = zip(np.split(U, bounds[1:-1]), h0, strict=True)
    expected = np.concatenate([ref.scan(a, theta, u, before, f) for u, before in parts])
    np.testing.assert_allclose(h, expected, atol=LIMITS[dtype])


@pytest.mark.parametrize("f", [0, 2, 3])
@pytest.mark.parametrize("lengths", [[1], [7], [1, 5, 2]])
def test_the_scan_back_is_the_transpose_of_the_scan(f, lengths):
    """<δ, dh> = <dE/du, du> along any change du, and the sums D are those over all steps."""
    rng, m = np.random.default_rng([2, f, len(lengths)]), 3
    _, _, (re, im, gain) = shares(rng, m, np.float64)
    bounds, K = np.concatenate([[0], np.cumsum(lengths)]), sum(lengths)
    U, dU, d = rng.normal(size=(3, K, 2 * m))
    h0, zero = rng.normal(size=(len(lengths), 2 * m)), np.zeros((len(lengths), 2 * m))
    h, dh = U.copy(), dU.copy()
    loops.scan(re, im, gain, bounds, h0, f, h)
    loops.scan(re, im, gain, bounds, zero, f, dh)  # the scan is linear
    back, D, carry = d.copy(), np.zeros((3, m)), np.full(2 * m, np.nan)
    loops.scan_back(re, im, gain, bounds, h0, f, h, back, D, carry)
    assert np.vdot(d, dh) == pytest.approx(np.vdot(back, dU), rel=1e-12)
    before, turned = np.empty_like(h), np.empty_like(h)
    for s, (first, last) in enumerate(zip(bounds[:-1], bounds[1:] - 1, strict=True)):
        for c in range(2 * m):
            forward = c % m < f
            for t in range(first, last + 1):
                at_edge = t == (first if forward else last)
                before[t, c] = h0[s, c] if at_edge else h[t - 1 if forward else t + 1, c]
    turned[:, :m], turned[:, m:] = -before[:, m:], before[:, :m]
    delta = back / np.tile(gain, 2)
    for row, other in zip(D, (h, before, turned), strict=True):
        sums = (delta * other).sum(axis=0)
        np.testing.assert_allclose(row, sums[:m] + sums[m:], atol=1e-12)


@DTYPES
def test_normalising_has_its_sum_before_it_and_its_slope_after_it(dtype):
    rng, (K, C) = np.random.default_rng(3), (5, 6)
    x, o, b, dz = (rng.normal(size=s) for s in ((K, C), (K, C), C, (K, C)))
    moved, z, r = x.astype(dtype), np.empty((K, C), dtype), np.empty(K, dtype)
    one, eps = dtype(1), dtype(ref.EPSILON)
    loops.add_and_normalize(moved, o.astype(dtype), b.astype(dtype), 0, 0, one, eps, z, r)
    np.testing.assert_allclose(moved, x + o + b, atol=LIMITS[dtype])
    np.testing.assert_allclose(z, [ref.normalized(row) for row in x + o + b], atol=LIMITS[dtype])
    np.testing.assert_allclose(z, moved * r[:, None], atol=LIMITS[dtype])
    before = rng.normal(size=(K, C))
    dx = before.astype(dtype)
    loops.normalize_back(z, r, dz.astype(dtype), dx)
    e = 1e-6
    for t, row in enumerate(x + o + b):
        slopes = [
            dz[t] @ (ref.normalized(row + e * way) - ref.normalized(row - e * way)) / (2 * e) for way in np.eye(C)
        ]
        np.testing.assert_allclose(dx[t] - before[t], slopes, atol=max(LIMITS[dtype], 1e-8))


@DTYPES
def test_a_row_of_zeros_is_normalised_to_zeros(dtype):
    x, z, r = np.zeros((1, 4), dtype), np.full((1, 4), np.nan, dtype), np.empty(1, dtype)
    zero = np.zeros((1, 4), dtype)
    loops.add_and_normalize(x, zero, zero[0], 0, 0, dtype(1), dtype(ref.EPSILON), z, r)
    np.testing.assert_array_equal(z, 0)
    assert r[0] == pytest.approx(ref.EPSILON**-0.5, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.3])
@DTYPES
def test_rectifying_leaves_out_what_the_hash_says(share, dtype):
    rng, (K, C), seed = np.random.default_rng(4), (6, 5), 2**32 - 7  # whose counter passes 2^32
    h, b, d = rng.normal(size=(K, C)), rng.normal(size=C), rng.normal(size=(K, C))
    drop, scale = int(share * 2**32), dtype(1 / (1 - share))
    stays = np.array([ref.kept(share, seed - 0x9E3779B9, 0, t, C) for t in range(K)]) * scale
    p = np.empty((K, C), dtype)
    loops.rectify(h.astype(dtype), b.astype(dtype), drop, seed, scale, p)
    np.testing.assert_allclose(p, np.maximum(h + b, 0) * stays, atol=LIMITS[dtype])
    back, db = d.astype(dtype), np.ones(C, dtype)
    loops.rectify_back(p, scale, back, db)
    np.testing.assert_allclose(back, d * stays * (h + b > 0), atol=LIMITS[dtype])
    np.testing.assert_allclose(db, 1 + (d * stays * (h + b > 0)).sum(axis=0), atol=10 * LIMITS[dtype])


@pytest.mark.parametrize("share", [0.0, 0.4])
@DTYPES
def test_what_a_layer_adds_is_left_out_as_the_hash_says(share, dtype):
    rng, (K, C), seed = np.random.default_rng(5), (6, 5), 123
    x, o, b, d = (rng.normal(size=s) for s in ((K, C), (K, C), C, (K, C)))
    drop, scale = int(share * 2**32), dtype(1 / (1 - share))
    stays = np.array([ref.kept(share, seed - 0x9E3779B9, 0, t, C) for t in range(K)]) * scale
    moved, z, r = x.astype(dtype), np.empty((K, C), dtype), np.empty(K, dtype)
    loops.add_and_normalize(moved, o.astype(dtype), b.astype(dtype), drop, seed, scale, dtype(1e-5), z, r)
    np.testing.assert_allclose(moved, x + (o + b) * stays, atol=LIMITS[dtype])
    do, db = np.empty((K, C), dtype), np.zeros(C, dtype)
    loops.drop_back(d.astype(dtype), drop, seed, scale, do, db)
    np.testing.assert_allclose(do, d * stays, atol=LIMITS[dtype])
    np.testing.assert_allclose(db, (d * stays).sum(axis=0), atol=10 * LIMITS[dtype])


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_hash_leaves_out_a_share_that_looks_random(share):
    """By its share, its neighbours in a row and those in a column, within five standard deviations."""
    K, C, one = 400, 64, np.float64(1)
    p = np.empty((K, C))
    loops.rectify(np.ones((K, C)), np.zeros(C), int(share * 2**32), 99, one, p)
    out = p == 0
    spread = np.sqrt(share * (1 - share) / out.size)
    assert abs(out.mean() - share) < 5 * spread
    both = share**2 + 5 * np.sqrt(share**2 * (1 - share**2) / out.size)
    assert (out[1:] & out[:-1]).mean() < both
    assert (out[:, 1:] & out[:, :-1]).mean() < both
    assert np.abs(out.mean(axis=0) - share).max() < 5 * np.sqrt(share * (1 - share) / K)
