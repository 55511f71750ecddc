"""The operations on tiles, against NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import sparse

from echolearn.sequences.batching import LANES
from echolearn.states import _simd as simd
from echolearn.states._simd import STEPS
from echolearn.states._weights import compressed

units = st.integers(1, 70)
dtypes = st.sampled_from(["float32", "float64"])
seeds = st.integers(0, 10**6)


# These operations have no way in from Python; a tile is one row, so that it is a view of (N, LANES) here.
@njit
def load(M, r, stride, live, tile):
    simd.load(M, r, stride, live, tile)


@njit
def store(tile, M, r, stride, live):
    simd.store(tile, M, r, stride, live)


@njit
def add_product(indptr, indices, data, h, z):
    simd.add_product(indptr, indices, data, h, z)


@njit
def add_outer(indptr, indices, Z, H, out):
    simd.add_outer(indptr, indices, Z, H, out)


@settings(max_examples=40, deadline=None)
@given(N=units, stride=st.integers(1, 3), live=st.integers(1, LANES), dtype=dtypes, seed=seeds)
def test_rows_are_loaded_into_a_tile_and_stored_from_it(N, stride, live, dtype, seed):
    rng = np.random.default_rng(seed)
    r = int(rng.integers(0, 4))
    M = rng.normal(size=(r + (live - 1) * stride + 1, N)).astype(dtype)  # an ended lane would read beyond its end
    tile = np.full((N, LANES), np.nan, dtype)
    load(M, r, stride, live, tile.reshape(-1))
    np.testing.assert_array_equal(tile[:, :live], M[r::stride].T)
    np.testing.assert_array_equal(tile[:, live:], 0)
    out, tile = M.copy(), rng.normal(size=(N, LANES)).astype(dtype)
    store(tile.reshape(-1), out, r, stride, live)
    M[r::stride] = tile.T[:live]
    np.testing.assert_array_equal(out, M)


@settings(max_examples=40, deadline=None)
@given(N=units, density=st.floats(0, 1), dtype=dtypes, seed=seeds)
def test_products_of_a_sparse_matrix_with_a_tile(N, density, dtype, seed):
    rng = np.random.default_rng(seed)
    W_rec = sparse.csr_array(rng.normal(size=(N, N)) * (rng.random((N, N)) < density))
    h, z = rng.normal(size=(2, N, LANES)).astype(dtype)
    expected = z + W_rec @ h
    add_product(*compressed(W_rec, dtype), h.reshape(-1), z.reshape(-1))
    np.testing.assert_allclose(z, expected, rtol=0, atol=10 * N * np.finfo(dtype).eps)


@settings(max_examples=40, deadline=None)
@given(N=units, density=st.floats(0, 1), dtype=dtypes, seed=seeds)
def test_outer_products_of_tiles_on_a_sparse_pattern(N, density, dtype, seed):
    rng = np.random.default_rng(seed)
    pattern = sparse.csr_array(rng.normal(size=(N, N)) * (rng.random((N, N)) < density))
    indptr, indices, _ = compressed(pattern, dtype)
    Z, H = rng.normal(size=(2, STEPS, N, LANES)).astype(dtype)
    out = rng.normal(size=pattern.nnz)
    dense = np.einsum("sib,sjb->ij", Z, H, dtype=np.float64)
    expected = out + dense[np.repeat(np.arange(N), np.diff(pattern.indptr)), pattern.indices]
    add_outer(indptr, indices, Z.reshape(STEPS, -1), H.reshape(STEPS, -1), out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=100 * STEPS * LANES * np.finfo(dtype).eps)
