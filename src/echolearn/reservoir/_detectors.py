"""Random units that distinguish whole sequences: detectors of levels, and detectors of changes at many time scales.

Their settings are spread over the units instead of being chosen: leaks, scales and biases from gentle to strong, delays
from one step to an eighth of a sequence. The ranges were found on training data (docs/evidence/sequences.md).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from echolearn.modelfile.schema import TAPS_PER_UNIT, spacings
from echolearn.reservoir._reservoir import Reservoir, draw_leaks
from echolearn.reservoir._topologies import random_connections, recurrent_weights
from echolearn.validation import Array

CONNECTIONS_PER_UNIT = 10
MIN_UNITS_OF_THEORY = 200  # from which on the spectral radius of random connections is near its expectation
MAX_CHANNELS_PER_UNIT = 9  # features that a detector of changes reads


def draw_level_detectors(X: Array, N: int, rng: np.random.Generator) -> Reservoir:
    """Return N units that read the present input, on the scale of frames X (K, n_in)."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0.0)
    W = scale[:, None] * rng.uniform(-1, 1, (len(mean), N)) * _spread(rng, 0.1, 1.0, N)
    bias, leak = rng.uniform(-0.3, 0.3, N) - mean @ W, draw_leaks(rng, (0.03, 1.0), N, "random")
    return Reservoir(W=W, W_rec=_recurrent(rng, N, 0.9), activation="tanh", leak=leak, bias=bias)


def draw_change_detectors(X: Array, delays: Array, steps: int, N: int, rng: np.random.Generator) -> Reservoir:
    """Return N units that read differences of delayed inputs, on the scale of X (K, D n_in); weights add up to 0."""
    n_in = X.shape[1] // len(delays)
    W = np.zeros((len(delays), n_in, N))
    distances = spacings(steps)
    taps = [_orthogonal_taps(rng, 1 + N // len(distances)) for _ in distances]
    for unit in range(N):
        few = min(n_in, MAX_CHANNELS_PER_UNIT)
        channels = rng.choice(n_in, int(2 ** rng.uniform(0, np.log2(few + 1))) if few > 1 else 1, replace=False)
        count, which = divmod(unit, len(distances))
        rows = np.searchsorted(delays, distances[which] * np.arange(TAPS_PER_UNIT))
        W[rows[:, None], channels, unit] = taps[which][count][:, None]
    W = W.reshape(-1, N)
    deviation = (X.astype(np.float64) @ W).std(axis=0)
    W *= np.where(deviation > 0, _spread(rng, 0.3, 3.0, N) / np.where(deviation > 0, deviation, 1), 0.0)
    return Reservoir(
        W=W,
        W_rec=_recurrent(rng, N, 0.5),
        activation="tanh",
        leak=draw_leaks(rng, (0.3, 1.0), N, "random"),
        bias=rng.uniform(-2, 2, N),
    )


def _orthogonal_taps(rng: np.random.Generator, count: int) -> Array:
    """Return rows (count or more, taps) that add up to 0; as many as are possible in turn are orthogonal.

    Units of one distance then differ more than with independent taps, and answers depend less on the seed.
    """
    blocks = rng.standard_normal((-(-count // (TAPS_PER_UNIT - 1)), TAPS_PER_UNIT, TAPS_PER_UNIT - 1))
    Q = np.linalg.qr(blocks - blocks.mean(axis=1, keepdims=True))[0]
    return np.asarray(Q.swapaxes(1, 2).reshape(-1, TAPS_PER_UNIT))


def _recurrent(rng: np.random.Generator, N: int, radius: float) -> sparse.csr_array:
    """Return random connections of a spectral radius: of many units, of about that which theory predicts.

    The eigenvalues of a large random matrix fill a circle, whose radius is the root of the mean sum of squares of a
    row. To compute them would take as long as the fit to a small set of series.
    """
    if N < MIN_UNITS_OF_THEORY:
        return recurrent_weights("random", rng, N, CONNECTIONS_PER_UNIT, radius)
    return random_connections(rng, N, CONNECTIONS_PER_UNIT) * (radius / np.sqrt(CONNECTIONS_PER_UNIT / 3))


def _spread(rng: np.random.Generator, low: float, high: float, N: int) -> Array:
    """Return N numbers, uniform in logarithm."""
    return np.exp(rng.uniform(np.log(low), np.log(high), N))
