"""The spectral radius |λ_max| of a recurrent matrix: how to compute it, how to set it, and where it is too large."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, eigs

from echolearn.exceptions import EchoStateWarning
from echolearn.validation import Array, warn_user

# Above this spectral radius a network without leak cannot forget: 1 / (largest slope of f).
ECHO_LIMIT = {"sigmoid": 4.0, "tanh": 1.0, "relu": 1.0, "identity": 1.0}

# Leaks restore some forgetting, but above this many times the limit too little of it: such networks were found to know
# hardly more than their present input (reliability/stress.py).
LEAKY_FACTOR = 4.0

MAX_DENSE_UNITS = 64  # up to this size all eigenvalues at once are cheap, and never fail to converge


def rescaled(W_rec: sparse.csr_array, spectral_radius: float) -> sparse.csr_array:
    """Return W_rec λ / |λ_max| (eq. 3)."""
    if not spectral_radius > 0 or not np.isfinite(spectral_radius):
        raise ValueError(f"spectral_radius={spectral_radius!r}; expected a positive number (tanh: about 0.9).")
    radius = spectral_radius_of(W_rec)
    # A nilpotent matrix has radius 0; if its cycles cancel, floating point leaves a root of its rounding errors.
    if radius <= 1e-5 * max(abs(W_rec).max(), 1e-300):
        raise ValueError(
            "W_rec is nilpotent (spectral radius 0), so it cannot be scaled to "
            f"spectral_radius={spectral_radius:g}. Add connections that close a cycle, or leave it unscaled."
        )
    return W_rec * (spectral_radius / radius)


def spectral_radius_of(W_rec: sparse.csr_array, tol: float = 1e-7) -> float:
    """Return |λ_max|: from all eigenvalues of a small matrix, by ARPACK from a fixed start vector for a large one."""
    N = W_rec.shape[0]
    if _has_no_cycle(W_rec):
        return 0.0
    if N > MAX_DENSE_UNITS:
        try:
            v0 = np.random.default_rng(0).standard_normal(N)
            restarts = max(50, N * N // 2000)  # which take about as long as the dense way
            largest = eigs(W_rec, k=4, ncv=40, v0=v0, tol=tol, maxiter=restarts, return_eigenvectors=False)
            return float(np.abs(largest).max())
        except ArpackError:
            pass  # close clusters on the circle can stall it; the dense way always ends
    dense = W_rec.toarray() if sparse.issparse(W_rec) else np.asarray(W_rec)
    return float(np.abs(np.linalg.eigvals(dense)).max())


def _has_no_cycle(W_rec: sparse.csr_array) -> bool:
    """Return whether every strong component is one unit without a loop to itself: then W_rec is nilpotent."""
    matrix = sparse.csr_array(W_rec)
    matrix.eliminate_zeros()
    components, _ = sparse.csgraph.connected_components(matrix, connection="strong")
    return bool(components == matrix.shape[0] and not matrix.diagonal().any())


def warn_without_echo(spectral_radius: float, activation: str, leak: Array) -> None:
    """Issue an EchoStateWarning where the echo state property cannot hold."""
    leaks = bool((leak < 1).any())
    limit = ECHO_LIMIT.get(activation, np.inf) * (LEAKY_FACTOR if leaks else 1.0)  # of a registered one: unknown
    if spectral_radius > limit:
        why, or_else = (
            ("leaks no longer let the network forget its start", "")
            if leaks
            else ("the network has no echo states (it never forgets its start)", ", or a leak below 1")
        )
        warn_user(
            f"spectral_radius={spectral_radius:g} with activation={activation!r}: above {limit:g} {why}. Use "
            f"a smaller spectral_radius{or_else}.",
            EchoStateWarning,
        )
