"""The operations on tiles, against NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import sparse

from echolearn.states import _simd as simd
from echolearn.states._kernels import TILE_LANES, compressed
from echolearn.states._simd import steps_at_once

units = st.integers(1, 70)
dtypes = st.sampled_from(["float32", "float64"])
seeds = st.integers(0, 10**6)
widths = st.sampled_from(TILE_LANES)


# These operations have no way in from Python; a tile is one row, a view of (N, L) here; `lanes` is L zeros.
@njit
def load(lanes, M, r, stride, live, tile):
    simd.load(lanes, M, r, stride, live, tile)


@njit
def store(lanes, tile, M, r, stride, live):
    simd.store(lanes, tile, M, r, stride, live)


@njit
def add_product(lanes, indptr, indices, data, h, z):
    simd.add_product(lanes, indptr, indices, data, h, z)


@njit
def add_outer(lanes, indptr, indices, Z, H, out):
    simd.add_outer(lanes, indptr, indices, Z, H, out)


@settings(max_examples=40, deadline=None)
@given(N=units, stride=st.integers(1, 3), L=widths, dtype=dtypes, seed=seeds)
def test_rows_are_loaded_into_a_tile_and_stored_from_it(N, stride, L, dtype, seed):
    rng = np.random.default_rng(seed)
    r, live = int(rng.integers(0, 4)), int(rng.integers(1, L, endpoint=True))
    M = rng.normal(size=(r + (live - 1) * stride + 1, N)).astype(dtype)  # an ended lane would read beyond its end
    tile = np.full((N, L), np.nan, dtype)
    load((0,) * L, M, r, stride, live, tile.reshape(-1))
    np.testing.assert_array_equal(tile[:, :live], M[r::stride].T)
    np.testing.assert_array_equal(tile[:, live:], 0)
    out, tile = M.copy(), rng.normal(size=(N, L)).astype(dtype)
    store((0,) * L, tile.reshape(-1), out, r, stride, live)
    M[r::stride] = tile.T[:live]
    np.testing.assert_array_equal(out, M)


@settings(max_examples=40, deadline=None)
@given(N=units, density=st.floats(0, 1), L=widths, dtype=dtypes, seed=seeds)
def test_products_of_a_sparse_matrix_with_a_tile(N, density, L, dtype, seed):
    rng = np.random.default_rng(seed)
    W_rec = sparse.csr_array(rng.normal(size=(N, N)) * (rng.random((N, N)) < density))
    h, z = rng.normal(size=(2, N, L)).astype(dtype)
    expected = z + W_rec @ h
    add_product((0,) * L, *compressed(W_rec, dtype), h.reshape(-1), z.reshape(-1))
    np.testing.assert_allclose(z, expected, rtol=0, atol=10 * N * np.finfo(dtype).eps)


@settings(max_examples=40, deadline=None)
@given(N=units, density=st.floats(0, 1), L=widths, dtype=dtypes, seed=seeds)
def test_outer_products_of_tiles_on_a_sparse_pattern(N, density, L, dtype, seed):
    steps = steps_at_once(L)
    rng = np.random.default_rng(seed)
    pattern = sparse.csr_array(rng.normal(size=(N, N)) * (rng.random((N, N)) < density))
    indptr, indices, _ = compressed(pattern, dtype)
    Z, H = rng.normal(size=(2, steps, N, L)).astype(dtype)
    out = rng.normal(size=pattern.nnz)
    dense = np.einsum("sib,sjb->ij", Z, H, dtype=np.float64)
    expected = out + dense[np.repeat(np.arange(N), np.diff(pattern.indptr)), pattern.indices]
    add_outer((0,) * L, indptr, indices, Z.reshape(steps, -1), H.reshape(steps, -1), out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=100 * steps * L * np.finfo(dtype).eps)
