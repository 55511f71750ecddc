"""Topologies: which units of a reservoir are connected, by name (`Reservoir.random` explains each).

Row i of a recurrent matrix W_rec (N, N) holds the weights of the connections into unit i. All but the delay line are
scaled to a spectral radius (eq. 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import sparse

from echolearn.reservoir._spectrum import rescaled
from echolearn.validation import Array

Topology: TypeAlias = str | Array | sparse.csr_array  # a name, or a matrix (N, N)

REWIRED_SHARE = 0.1  # share of the connections of "small_world"
MAX_GROUPS = 4  # number of groups of "groups" and "deep", if there are that many units


def random_connections(rng: np.random.Generator, N: int, connections: int) -> sparse.csr_array:
    """Return a random matrix (N, N) with `connections` entries, uniform in ±1, in every row and every column.

    The pattern is a sum of permutations: rows i and columns p((i + shift) mod N) never collide, because the shifts
    differ. So no unit idles, and the sparse products have rows of one length.
    """
    shifts = rng.choice(N, connections, replace=False)
    relabel = rng.permutation(N)
    rows = np.tile(np.arange(N), connections)
    columns = relabel[(rng.permutation(N)[None, :] + shifts[:, None]) % N].ravel()
    values = rng.uniform(-1, 1, N * connections)
    return sparse.csr_array((values, (rows, columns)), shape=(N, N))


def ring(N: int) -> sparse.csr_array:
    """Return the matrix with a connection of weight 1 from each unit to the next, and from the last to the first."""
    units = np.arange(N)
    return sparse.csr_array((np.ones(N), (units, np.roll(units, 1))), shape=(N, N))


def delay_line(N: int) -> sparse.csr_array:
    """Return the matrix with a connection of weight 1 from each unit to the next: a ring that is cut open."""
    units = np.arange(1, N)
    return sparse.csr_array((np.ones(N - 1), (units, units - 1)), shape=(N, N))


def small_world(rng: np.random.Generator, N: int, connections: int, rewired: float = REWIRED_SHARE) -> sparse.csr_array:
    """Return a matrix of connections from the `connections` nearest neighbours on a ring, uniform in ±1.

    With probability `rewired` each is replaced by one from another unit (Watts and Strogatz, Nature 393, 1998).
    """
    if connections >= N:
        raise ValueError(f"connections={connections} of {N} units; a small world needs fewer connections than units.")
    steps = np.arange(1, connections + 1)
    offsets = np.where(steps % 2, (steps + 1) // 2, -(steps // 2))  # 1, -1, 2, -2 ...
    columns = (np.arange(N)[:, None] + offsets) % N
    for i, row in enumerate(columns):
        replaced = rng.random(connections) < rewired
        others = np.setdiff1d(np.arange(N), [*row, i])
        count = min(int(replaced.sum()), len(others))
        row[np.flatnonzero(replaced)[:count]] = rng.choice(others, count, replace=False)
    rows = np.repeat(np.arange(N), connections)
    return sparse.csr_array((rng.uniform(-1, 1, columns.size), (rows, columns.ravel())), shape=(N, N))


def orthogonal(rng: np.random.Generator, N: int) -> sparse.csr_array:
    """Return a rotation or reflection, uniform among all of them: Q of a Gaussian matrix, with the signs of R."""
    Q, R = np.linalg.qr(rng.standard_normal((N, N)))
    return sparse.csr_array(Q * np.sign(np.diagonal(R)))


def grouped(rng: np.random.Generator, N: int, connections: int, *, deep: bool) -> sparse.csr_array:
    """Return `MAX_GROUPS` random matrices of spectral radius 1 along the diagonal.

    With `deep`, unit i of a group also has a connection of weight 1 from unit i of the group before (Gallicchio,
    Micheli and Pedrelli, Neurocomputing 268, 2017). With a range of leaks every group has its own time scale.
    """
    group = group_of_units(N)
    sizes = np.bincount(group)
    diagonal = [rescaled(random_connections(rng, int(n), min(connections, int(n))), 1.0) for n in sizes]
    W_rec = sparse.csr_array(sparse.block_diag(diagonal))
    if deep:
        first = np.cumsum(sizes) - sizes
        before = first[group - 1] + (np.arange(N) - first[group]) % sizes[group - 1]
        later = np.flatnonzero(group > 0)
        W_rec = W_rec + sparse.csr_array((np.ones(len(later)), (later, before[later])), shape=(N, N))
    return W_rec


def group_of_units(N: int) -> Array:
    """Return the group of each unit (N,): 0 0 0 1 1 1 ..."""
    return np.arange(N) * min(MAX_GROUPS, N) // N


_MATRICES: dict[str, Callable[[np.random.Generator, int, int], sparse.csr_array]] = {
    "random": random_connections,
    "ring": lambda rng, N, connections: ring(N),
    "delay_line": lambda rng, N, connections: delay_line(N),
    "small_world": small_world,
    "orthogonal": lambda rng, N, connections: orthogonal(rng, N),
    "groups": lambda rng, N, connections: grouped(rng, N, connections, deep=False),
    "deep": lambda rng, N, connections: grouped(rng, N, connections, deep=True),
}

TOPOLOGIES = tuple(_MATRICES)  # the names that the parameter `topology` accepts


def recurrent_weights(
    topology: Topology, rng: np.random.Generator, N: int, connections: int, spectral_radius: float | None
) -> sparse.csr_array:
    """Return W_rec (N, N): a topology by name, or a given matrix, scaled to `spectral_radius` (eq. 3; None: unscaled).

    Rings and rotations have spectral radius 1 before they are scaled, and ARPACK could not tell their eigenvalues
    apart. A delay line has no cycle and so spectral radius 0: each of its weights becomes `spectral_radius`.
    """
    if not isinstance(topology, str):
        W_rec = sparse.csr_array(topology, dtype=np.float64)
        if W_rec.shape != (N, N):
            raise ValueError(f"topology is a matrix of shape {W_rec.shape}; expected ({N}, {N}), one row per unit.")
        return W_rec if spectral_radius is None else rescaled(W_rec, spectral_radius)
    if topology not in _MATRICES:
        raise ValueError(f"topology={topology!r} is unknown; choose one of {list(_MATRICES)}, or give a matrix.")
    W_rec = _MATRICES[topology](rng, N, min(connections, N))
    if spectral_radius is None:
        return W_rec
    if topology in ("ring", "orthogonal", "delay_line"):
        return W_rec * spectral_radius
    return rescaled(W_rec, spectral_radius)
