"""Weights in the layouts of the compiled loops, and the drive of the units."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.states._weights import compressed, drive, padded, padded_positions


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_both_layouts_hold_the_matrix(density):
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(7, 7)) * (rng.random((7, 7)) < density)
    W_rec = sparse.csr_array(dense)
    place, value = padded(W_rec, np.float64)
    h = rng.normal(size=7)
    np.testing.assert_allclose((value * h[place]).sum(axis=0), dense @ h, atol=1e-14)
    np.testing.assert_array_equal(value[padded_positions(W_rec)], W_rec.data)
    indptr, indices, data = compressed(W_rec, "float32")
    assert (indptr.dtype, indices.dtype, data.dtype) == (np.uint32, np.uint32, np.float32)
    again = sparse.csr_array((data, indices.astype(int), indptr.astype(int)), shape=(7, 7))
    np.testing.assert_array_equal(again.toarray(), dense.astype(np.float32))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("feedback", [True, False])
def test_the_drive_is_all_of_eq_1_but_the_recurrence(bias, feedback):
    rng = np.random.default_rng(0)
    w = ref.network(rng, N=5, n_in=3, bias=bias, feedback=feedback)
    X, X_fb = rng.normal(size=(6, 3)), rng.normal(size=(6, 2)) if feedback else None
    expected = X @ w["W"] + (X_fb @ w["W_fb"].T if feedback else 0) + (w["bias"] if bias else 0)
    reservoir, out = Reservoir(**w), np.empty((6, 5))
    np.testing.assert_allclose(drive(reservoir, X, X_fb), expected, rtol=1e-13, atol=1e-14)
    assert np.shares_memory(drive(reservoir, X, X_fb, out), out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)
    assert drive(reservoir, X.astype(np.float32), None if X_fb is None else X_fb.astype("f4")).dtype == np.float32
