"""
Memory against non-linearity
============================

How should the inputs of a reservoir be scaled? A reservoir can store its past inputs, or it can transform them, but a
fixed number of units cannot do all of both. The scaling of the inputs decides: small inputs stay in the linear part of
tanh, large inputs leave it.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import Reservoir
from echolearn.states import harvest

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
u = rng.uniform(-1, 1, (6000, 1))
past = np.column_stack([np.roll(u[:, 0], delay) for delay in range(1, 31)])
products = past[:, :-1] * past[:, 1:]

# %%
# Two capacities
# --------------
#
# *Memory*: how well a linear readout recovers the input of 1, 2, ..., 30 steps ago. *Non-linearity*: how well it
# recovers the product of two neighbouring inputs, which no linear unit can compute. Each is the share of the variance
# that is explained on data that the readout was not fitted to.


def explained(H, targets):
    """Return the share of the variance of each target that a linear readout explains on the second half."""
    H = np.column_stack([H, np.ones(len(H))])
    half = len(H) // 2
    U = np.linalg.solve(H[:half].T @ H[:half] + 1e-9 * half * np.eye(H.shape[1]), H[:half].T @ targets[:half])
    return np.maximum(1 - np.mean((H[half:] @ U - targets[half:]) ** 2, axis=0) / targets[half:].var(axis=0), 0)


scalings = np.geomspace(0.01, 3, 13)
memory, nonlinear = [], []
for scaling in scalings:
    reservoir = Reservoir.random(
        1, 60, spectral_radius=0.95, connections=10, input_scaling=scaling, bias_scaling=0.5, random_state=0
    )
    H = harvest(reservoir, u)[100:]
    memory.append(explained(H, past[100:]))
    nonlinear.append(explained(H, products[100:]))
memory, nonlinear = np.array(memory), np.array(nonlinear)

# %%
# The two maps show every delay and every scaling. The curves are their sums over the delays.
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", width_ratios=(1, 1, 1.1))
for axes, shares, title in ((left, memory, "Memory: u(t − d)"), (middle, nonlinear, "Products: u(t − d) u(t − d − 1)")):
    delays = np.arange(1, shares.shape[1] + 1)
    picture = axes.pcolormesh(scalings, delays, shares.T, cmap="viridis", vmin=0, vmax=1, shading="nearest")
    axes.set(xscale="log", xlabel="input scaling", title=title, ylim=(0.5, 25.5))
left.set_ylabel("delay d in steps")
figure.colorbar(picture, ax=middle, label="share of the variance explained")
right.semilogx(scalings, memory.sum(axis=1), "o-", color="#0072B2", label="memory")
right.semilogx(scalings, nonlinear.sum(axis=1), "s-", color="#D55E00", label="products")
right.set(xlabel="input scaling", ylabel="capacity: sum over delays", ylim=(0, None))
right.set_title("Memory is exchanged for products, up to a point")
right.legend(frameon=False)
best = scalings[nonlinear.sum(axis=1).argmax()]
print(f"most products at an input scaling of {best:.2f}; most memory at {scalings[memory.sum(axis=1).argmax()]:.2f}")

plt.show()

# %%
# With small inputs the reservoir recovers about 16 past inputs and almost no product. With larger inputs memory falls.
# Products are recovered better at first, until the memory that they need is gone as well.
#
# Limits
# ------
#
# This is one reservoir of 60 units, with independent inputs and one kind of product. Dambre and colleagues (Scientific
# Reports 2, 2012) define the capacity of all polynomials and prove that their sum is at most the number of units.
# Learning the weights does not raise that limit. It moves capacity to what the task needs.
