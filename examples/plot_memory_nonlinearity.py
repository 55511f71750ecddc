"""
Memory against non-linearity
============================

A reservoir can remember its inputs, or transform them, but a fixed number of units cannot do all of both. The larger
the inputs are scaled, the further the units leave the linear part of tanh. The memory of past inputs falls. The product
of two of them, which no linear unit can compute, is found more and more, until the memory that it needs is gone, too.

    python examples/plot_memory_nonlinearity.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import Reservoir
from echolearn.states import harvest

rng = np.random.default_rng(0)
u = rng.uniform(-1, 1, (6000, 1))
delays, scalings = range(1, 31), np.geomspace(0.01, 3, 13)
memory, products = [], []


def explained(H, target):
    """Return the share of the variance that a linear readout explains on the second half."""
    H = np.column_stack([H, np.ones(len(H))])
    half = len(H) // 2
    U = np.linalg.solve(H[:half].T @ H[:half] + 1e-9 * half * np.eye(H.shape[1]), H[:half].T @ target[:half])
    return np.maximum(1 - np.mean((H[half:] @ U - target[half:]) ** 2, axis=0) / target[half:].var(axis=0), 0)


past = np.column_stack([np.roll(u[:, 0], d) for d in delays])
for scaling in scalings:
    reservoir = Reservoir.random(
        1, 60, spectral_radius=0.95, connections=10, input_scaling=scaling, bias_scaling=0.5, random_state=0
    )
    H = harvest(reservoir, u)[100:]
    memory.append(explained(H, past[100:]).sum())
    products.append(explained(H, (past[:, :10] * past[:, 1:11])[100:]).sum())

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(scalings, memory, "o-", color="#2a6fb0", label="inputs of the past (30 delays)")
axes.semilogx(scalings, products, "o-", color="#d9762b", label="products of neighbouring inputs (10 delays)")
axes.set(xlabel="input scaling", ylabel="capacity: sum of the explained shares")
axes.legend(frameon=False)

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
