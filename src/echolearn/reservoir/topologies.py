"""Who listens to whom: recurrent matrices (N, N) by name, before they are scaled to a spectral radius.

Row i holds what unit i hears. "random": every unit hears and is heard by `connections` others. "ring": unit i hears
unit i - 1, with weight 1. "delay_line": a ring that is cut open. "small_world" (Watts and Strogatz, Nature 393, 1998):
every unit hears its neighbours on a ring, and now and then one far away instead. "orthogonal": a random rotation, all
eigenvalues on one circle. "groups": groups of units that hear only their own group; with a range of leaks each group
has its own time scale. "deep": such groups in a row, each hearing the one before, the input entering at the first
(Gallicchio, Micheli and Pedrelli, Neurocomputing 268, 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.reservoir.reservoir import random_connections, rescaled

Array = NDArray[Any]

REWIRED = 0.1  # of the connections of "small_world"
GROUPS = 4  # of "groups" and "deep", if there are that many units


def ring(N: int) -> Any:
    """Unit i hears unit i - 1, and the first the last."""
    units = np.arange(N)
    return sparse.csr_array((np.ones(N), (units, np.roll(units, 1))), shape=(N, N))


def delay_line(N: int) -> Any:
    """Unit i hears unit i - 1: what enters at the first comes out at the last N - 1 steps later."""
    units = np.arange(1, N)
    return sparse.csr_array((np.ones(N - 1), (units, units - 1)), shape=(N, N))


def small_world(rng: np.random.Generator, N: int, connections: int, rewired: float = REWIRED) -> Any:
    """Unit i hears its `connections` nearest on a ring; each of them is, with probability `rewired`, replaced by one
    that i does not hear yet. Weights uniform in ±1."""
    if connections >= N:
        raise ValueError(f"connections={connections} of {N} units; a small world needs fewer connections than units.")
    steps = np.arange(1, connections + 1)
    offsets = np.where(steps % 2, (steps + 1) // 2, -(steps // 2))  # 1, -1, 2, -2 ...
    columns = (np.arange(N)[:, None] + offsets) % N
    for i, heard in enumerate(columns):
        moved = rng.random(connections) < rewired
        strangers = np.setdiff1d(np.arange(N), [*heard, i])
        count = min(int(moved.sum()), len(strangers))
        heard[np.flatnonzero(moved)[:count]] = rng.choice(strangers, count, replace=False)
    rows = np.repeat(np.arange(N), connections)
    return sparse.csr_array((rng.uniform(-1, 1, columns.size), (rows, columns.ravel())), shape=(N, N))


def orthogonal(rng: np.random.Generator, N: int) -> Any:
    """A rotation (or reflection) drawn evenly from all of them: Q of a Gaussian matrix, its signs put right."""
    Q, R = np.linalg.qr(rng.standard_normal((N, N)))
    return sparse.csr_array(Q * np.sign(np.diagonal(R)))


def groups(rng: np.random.Generator, N: int, connections: int, *, deep: bool) -> Any:
    """`GROUPS` random groups, each of spectral radius 1. deep: unit i of a group also hears unit i of the group
    before, with weight 1."""
    group = group_of_units(N)
    sizes = np.bincount(group)
    diagonal = [rescaled(random_connections(rng, int(n), min(connections, int(n))), 1.0) for n in sizes]
    W_rec = sparse.csr_array(sparse.block_diag(diagonal))
    if deep:
        first = np.cumsum(sizes) - sizes
        heard = first[group - 1] + (np.arange(N) - first[group]) % sizes[group - 1]
        later = np.flatnonzero(group > 0)
        W_rec = W_rec + sparse.csr_array((np.ones(len(later)), (later, heard[later])), shape=(N, N))
    return W_rec


def group_of_units(N: int) -> Array:
    """Which of the `GROUPS` groups each unit is in: 0 0 0 1 1 1 ..."""
    return np.arange(N) * min(GROUPS, N) // N


_NAMED: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "random": random_connections,
    "ring": lambda rng, N, connections: ring(N),
    "delay_line": lambda rng, N, connections: delay_line(N),
    "small_world": small_world,
    "orthogonal": lambda rng, N, connections: orthogonal(rng, N),
    "groups": lambda rng, N, connections: groups(rng, N, connections, deep=False),
    "deep": lambda rng, N, connections: groups(rng, N, connections, deep=True),
}
TOPOLOGIES = tuple(_NAMED)


def has_groups(topology: Any) -> bool:
    return isinstance(topology, str) and topology in ("groups", "deep")


def recurrent(topology: Any, rng: np.random.Generator, N: int, connections: int, spectral_radius: float | None) -> Any:
    """W_rec (N, N): a topology by name, or a matrix, scaled to `spectral_radius` (eq. 3; None: as it is).

    Rings and rotations have a spectral radius of 1 to begin with, and ARPACK would not tell their eigenvalues apart. A
    delay line has no cycle and so no spectral radius: each of its weights is `spectral_radius`.
    """
    if not isinstance(topology, str):
        W_rec = sparse.csr_array(topology, dtype=np.float64)
        if W_rec.shape != (N, N):
            raise ValueError(f"topology is a matrix of shape {W_rec.shape}; expected ({N}, {N}), one row a unit.")
        return W_rec if spectral_radius is None else rescaled(W_rec, spectral_radius)
    if topology not in _NAMED:
        raise ValueError(f"topology={topology!r} is unknown; choose one of {list(_NAMED)}, or give a matrix.")
    W_rec = _NAMED[topology](rng, N, min(connections, N))
    if spectral_radius is None:
        return W_rec
    if topology in ("ring", "orthogonal", "delay_line"):
        return W_rec * spectral_radius
    return rescaled(W_rec, spectral_radius)
