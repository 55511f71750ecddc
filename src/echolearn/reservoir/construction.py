"""Random draws of the weights of a reservoir (those of W_rec: see topologies)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from echolearn.reservoir.topologies import Topology, group_of_units, has_groups
from echolearn.validation import Array


def input_scales(input_scaling: ArrayLike, n_in: int) -> Array:
    """Return one number for all features, or a column (n_in, 1) with one per feature."""
    scale = np.asarray(input_scaling, dtype=np.float64)
    if scale.shape not in ((), (n_in,)):
        raise ValueError(
            f"input_scaling has {scale.size} numbers, but X has {n_in} features; give one number, or one each."
        )
    return scale if scale.ndim == 0 else scale[:, None]


def draw_input_weights(
    rng: np.random.Generator, n_in: int, N: int, input_scaling: ArrayLike, topology: Topology
) -> Array:
    """Return W (n_in, N), uniform in ±input_scaling. In a deep topology inputs reach the first group only."""
    scale = input_scales(input_scaling, n_in)
    W = rng.uniform(-scale, scale, (n_in, N))
    if isinstance(topology, str) and topology == "deep":
        W[:, group_of_units(N) > 0] = 0
    return W


def draw_leaks(rng: np.random.Generator, limits: tuple[float, float], N: int, topology: Topology) -> Array:
    """Return leaks (N,), evenly spaced in logarithm between limits (low, high).

    Units get them in random order; the groups of a topology from the first (high) to the last (low).
    """
    low, high = limits
    if not has_groups(topology):
        return rng.permutation(np.geomspace(low, high, N))
    group = group_of_units(N)
    return np.asarray(np.geomspace(high, low, group[-1] + 1)[group])
