"""Small stacks with random weights: as the slow witness takes them, and as the library does."""

from dataclasses import replace

import numpy as np

import reference as ref
from echolearn.gradients.stacked_network import Layer
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack

N_OUT = 3
SEES = ("output", "output+input", "output+hidden")


def draw(seed):
    """Return layers of random weights with sequences and class numbers.

    weights, X, labels: for both; layers: for the library; how: what the witness needs beside the ridges.
    """
    rng = np.random.default_rng([11, seed])
    sees, n_in = SEES[seed % 3], 2
    units = rng.integers(2, 5, 2 + seed % 2)
    weights, hows, wide = [], [], n_in
    for N in units:
        weights.append(ref.network(rng, N=int(N), n_in=wide, bias=bool(rng.integers(2))))
        lookback = [None, None, 2][rng.integers(3)]
        hows.append({"washout": int(rng.integers(3)), "lookback": lookback, "direct": bool(rng.integers(2))})
        wide = N_OUT + {"output": 0, "output+input": n_in, "output+hidden": int(N)}[sees]
    scales = [rng.uniform(0.5, 2, N_OUT) for _ in weights]
    ridges = 10.0 ** rng.uniform(-2, 1, len(weights))
    X = [rng.normal(size=(n, n_in)) for n in rng.integers(5, 10, 8)]
    labels = [rng.integers(0, N_OUT, len(x)) for x in X]
    layers = [
        Layer(
            Reservoir(**w, activation="tanh"),
            Task(h["washout"], h["direct"], lookback=h["lookback"]),
            mu,
            s,
            np.zeros((0, N_OUT)),
        )
        for w, h, mu, s in zip(weights, hows, ridges, scales, strict=True)
    ]
    return weights, X, labels, layers, {"sees": sees, "scales": scales, "hows": hows}, ridges


def two_batches(X, y, w=None):
    """Return the sequences in two batches; w: the weights of their targets."""
    return [pack(X[i::2], np.float64, y[i::2], w=None if w is None else w[i::2]) for i in range(2)]


def with_readouts(layers, readouts):
    """Return the layers with these readouts U."""
    return [replace(layer, U=U) for layer, U in zip(layers, readouts, strict=True)]
