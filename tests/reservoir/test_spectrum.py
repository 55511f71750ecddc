"""The spectral radius: dense and by ARPACK, and matrices that cannot be scaled."""

import numpy as np
import pytest
from scipy import sparse

from echolearn.reservoir import _spectrum
from echolearn.reservoir._spectrum import rescaled, spectral_radius_of
from echolearn.reservoir._topologies import random_connections


@pytest.mark.parametrize("seed", range(4))
def test_arpack_and_dense_agree(seed, monkeypatch):
    W_rec = random_connections(np.random.default_rng(seed), 300, 5)
    by_arpack = spectral_radius_of(W_rec)
    monkeypatch.setattr(_spectrum, "MAX_DENSE_UNITS", 10_000)
    assert by_arpack == pytest.approx(spectral_radius_of(W_rec), rel=1e-6)


def test_the_largest_eigenvalues_may_be_a_complex_pair():
    turn = np.array([[0.0, -2.0], [2.0, 0.0]])
    assert spectral_radius_of(sparse.csr_array(turn)) == pytest.approx(2)
    big = sparse.csr_array(sparse.block_diag([sparse.csr_array(turn)] + [0.5 * np.eye(2)] * 200))
    assert spectral_radius_of(big) == pytest.approx(2, rel=1e-6)


def test_radius_of_a_ring_whose_eigenvalues_lie_side_by_side():
    """ARPACK cannot tell the eigenvalues apart and must give up in time."""
    units = np.arange(300)
    ring = sparse.csr_array((np.full(300, 0.9), (units, np.roll(units, 1))), shape=(300, 300))
    assert spectral_radius_of(ring) == pytest.approx(0.9)


def test_radius_is_found_where_arpack_gives_up(monkeypatch):
    def stall(*_, **__):
        raise _spectrum.ArpackError(-9999)

    monkeypatch.setattr(_spectrum, "eigs", stall)
    W_rec = random_connections(np.random.default_rng(0), 300, 5)
    assert spectral_radius_of(W_rec) == pytest.approx(np.abs(np.linalg.eigvals(W_rec.toarray())).max())


@pytest.mark.parametrize("N", [3, 400])
def test_nilpotent_is_an_error(N):
    shift = sparse.csr_array(np.diag(np.ones(N - 1), 1))
    assert spectral_radius_of(shift) == 0
    with pytest.raises(ValueError, match=r"nilpotent \(spectral radius 0\).*0\.9.*close a cycle"):
        rescaled(shift, 0.9)
    with pytest.raises(ValueError, match="nilpotent"):
        rescaled(sparse.csr_array((N, N)), 0.9)


def test_nilpotent_with_cycles_that_cancel_is_an_error():
    with pytest.raises(ValueError, match="nilpotent"):
        rescaled(sparse.csr_array([[1.0, -1.0], [1.0, -1.0]]), 0.9)
    with pytest.raises(ValueError, match="nilpotent"):
        rescaled(sparse.csr_array([[2.0, 3.0, -5.0], [2.0, 3.0, -5.0], [2.0, 3.0, -5.0]]), 0.9)
