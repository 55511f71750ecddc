"""Random units that distinguish whole sequences: detectors of levels, and detectors of changes at many time scales.

Their settings are spread over the units instead of being chosen: leaks, scales and biases from gentle to strong, delays
from one step to an eighth of a sequence. The ranges were found on training data (docs/evidence/sequences.md).
"""

from __future__ import annotations

import numpy as np

from echolearn.reservoir._reservoir import Reservoir, bidirectional_reservoir, draw_leaks
from echolearn.reservoir._topologies import recurrent_weights
from echolearn.validation import Array

CONNECTIONS_PER_UNIT = 10
TAPS_PER_UNIT = 9  # delayed inputs of a detector of changes, equally far apart
MAX_CHANNELS_PER_UNIT = 9  # features that a detector of changes reads


def draw_level_detectors(X: Array, N: int, rng: np.random.Generator) -> Reservoir:
    """Return N units that read the present input, the second half backward, on the scale of frames X (K, n_in)."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0.0)
    forward = _level_detectors(mean, scale, N - N // 2, rng)
    if N == 1:
        return forward
    return bidirectional_reservoir(forward, _level_detectors(mean, scale, N // 2, rng))


def _level_detectors(mean: Array, scale: Array, N: int, rng: np.random.Generator) -> Reservoir:
    W = scale[:, None] * rng.uniform(-1, 1, (len(mean), N)) * _spread(rng, 0.1, 1.0, N)
    bias = rng.uniform(-0.3, 0.3, N) - mean @ W
    W_rec = recurrent_weights("random", rng, N, CONNECTIONS_PER_UNIT, 0.9)
    return Reservoir(W=W, W_rec=W_rec, activation="tanh", leak=draw_leaks(rng, (0.03, 1.0), N, "random"), bias=bias)


def spacings(steps: int) -> Array:
    """Return the distances between taps for sequences of so many steps: 1, 2, 4, ... up to an eighth of them."""
    return 2 ** np.arange(1 + int(np.log2(max(1.0, (steps - 1) / (TAPS_PER_UNIT - 1)))))


def tap_delays(steps: int) -> Array:
    """Return all delays, in ascending order, that detectors of changes read in sequences of so many steps."""
    return np.unique(np.outer(spacings(steps), np.arange(TAPS_PER_UNIT)))


def draw_change_detectors(X: Array, delays: Array, steps: int, N: int, rng: np.random.Generator) -> Reservoir:
    """Return N units that read differences of delayed inputs, on the scale of X (K, D n_in); weights add up to 0."""
    n_in = X.shape[1] // len(delays)
    W = np.zeros((len(delays), n_in, N))
    distances = spacings(steps)
    for unit in range(N):
        taps = rng.standard_normal(TAPS_PER_UNIT)
        taps -= taps.mean()
        few = min(n_in, MAX_CHANNELS_PER_UNIT)
        channels = rng.choice(n_in, int(2 ** rng.uniform(0, np.log2(few + 1))) if few > 1 else 1, replace=False)
        rows = np.searchsorted(delays, distances[unit % len(distances)] * np.arange(TAPS_PER_UNIT))
        W[rows[:, None], channels, unit] = taps[:, None]
    W = W.reshape(-1, N)
    deviation = (X.astype(np.float64) @ W).std(axis=0)
    W *= np.where(deviation > 0, _spread(rng, 0.3, 3.0, N) / np.where(deviation > 0, deviation, 1), 0.0)
    return Reservoir(
        W=W,
        W_rec=recurrent_weights("random", rng, N, CONNECTIONS_PER_UNIT, 0.5),
        activation="tanh",
        leak=draw_leaks(rng, (0.3, 1.0), N, "random"),
        bias=rng.uniform(-2, 2, N),
    )


def _spread(rng: np.random.Generator, low: float, high: float, N: int) -> Array:
    """Return N numbers, uniform in logarithm."""
    return np.exp(rng.uniform(np.log(low), np.log(high), N))
