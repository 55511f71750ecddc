"""Cosine between the paper's printed gradient and the exact one: the table of docs/explanation/derivation.md.

python benchmarks/printed_vs_exact.py
"""

import numpy as np

from echolearn import Reservoir
from echolearn.gradients import loss_and_gradients


def cosine(a, b):
    """Return the cosine of the angle between two arrays of the same shape."""
    return float(np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))


def cosines(seed, spectral_radius, lookback):
    """Return the cosines of dE/dW and dE/dW_rec as printed, and of dE/dW_rec negated and transposed."""
    rng = np.random.default_rng(seed)
    N, n_in, n_out = 50, 10, 5
    # All connections, so that a transposed gradient has its entries in the same places.
    reservoir = Reservoir.random(
        n_in,
        N,
        spectral_radius=spectral_radius,
        connections=N,
        input_scaling=0.5,
        activation="sigmoid",
        random_state=seed,
    )
    X = [rng.standard_normal((lookback * 40, n_in)) for _ in range(4)]
    T = [rng.standard_normal((len(x), n_out)) for x in X]
    settings = {"ridge": 1e-2, "lookback": lookback, "targets": "last"}
    exact = loss_and_gradients(reservoir, X, T, **settings)
    printed = loss_and_gradients(reservoir, X, T, gradient="printed", **settings)
    exact_rec, printed_rec = exact.dE_dW_rec.toarray(), printed.dE_dW_rec.toarray()
    of_W_rec = cosine(printed_rec, exact_rec), cosine(-printed_rec.T, exact_rec)
    return cosine(printed.dE_dW, exact.dE_dW), *of_W_rec


if __name__ == "__main__":
    print("N = 50, spectral radius 0.9 to 3.9, 5 seeds: smallest and largest cosine with the exact gradient")
    print("| n | dE/dW as printed | dE/dW_rec as printed | the same, negated and transposed |")
    print("|---|---|---|---|")
    for n in (1, 2, 3, 5):
        found = np.array([cosines(seed, radius, n) for seed in range(5) for radius in (0.9, 1.9, 2.9, 3.9)])
        cells = (f"{low:.2f} to {high:.2f}" for low, high in zip(found.min(0), found.max(0), strict=True))
        print(f"| {n} | " + " | ".join(cells) + " |")
