"""The Cholesky factor by halves against LAPACK's, whatever the sizes of halves and tiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.readout import _cholesky as cholesky


def positive(M):
    A = np.random.default_rng(M).normal(size=(M + 5, M))
    return A.T @ A


@settings(max_examples=40, deadline=None)
@given(M=st.integers(1, 40), small=st.integers(1, 12), tile=st.integers(1, 12), columns=st.integers(1, 9))
def test_the_factor_and_the_solution_are_those_of_lapack(M, small, tile, columns):
    G, Q = positive(M), np.random.default_rng(0).normal(size=(M, columns))
    L = G.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cholesky, "SMALL", small)
        patch.setattr(cholesky, "TILE", tile)
        cholesky.factor(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(G), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(G @ cholesky.solve(L, Q), Q, atol=1e-6)


@pytest.mark.parametrize("where", [0, 9, 19])
def test_a_matrix_that_is_not_positive_definite_is_refused(where, monkeypatch):
    monkeypatch.setattr(cholesky, "SMALL", 3)
    G = positive(20)
    G[where, where] = -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky.factor(G)


@given(M=st.integers(1, 5000), most=st.integers(1, 600))
def test_equal_slices_cover_all_and_are_no_larger_than_allowed(M, most):
    found = cholesky.equal_slices(M, most)
    assert [i for part in found for i in range(M)[part]] == list(range(M))
    assert all(0 < part.stop - part.start <= most for part in found)
