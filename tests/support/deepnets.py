"""Random deep networks, and sequences for them."""

import numpy as np

from echolearn.reservoir._deep_reservoir import DeepReservoir


def draw(seed, *, units=8, layers=2, n_in=3, bidirectional=False):
    """Return a network whose every weight is random: the biases too, and angles of both signs."""
    rng = np.random.default_rng([12, seed])
    drawn = DeepReservoir.random(
        n_in, units, layers, leak=(0.05, 0.9), angle=np.pi, bidirectional=bidirectional, rng=rng
    )
    weights = {name: value + 0.2 * rng.normal(size=value.shape) for name, value in drawn.weights.items()}
    return drawn.with_weights(weights)


def frames(seed, lengths, n_in=3):
    """Return random sequences."""
    rng = np.random.default_rng([13, seed])
    return [rng.normal(size=(n, n_in)) for n in lengths]


def bounds_of(sequences):
    """Return where each sequence begins among the frames of all, and where the last one ends."""
    return np.concatenate([[0], np.cumsum([len(x) for x in sequences])])


def forward_pairs(stack):
    """Return how many pairs of each layer run forward."""
    return stack.units // 2 - stack.backward_pairs
