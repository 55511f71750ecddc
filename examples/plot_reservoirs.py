"""
Reservoirs: topologies and diagnostics
======================================

Which pattern of connections should a reservoir have, and how can a reservoir be examined before anything is fitted?
This example draws the seven topologies that `Reservoir.random` knows, and then all diagnostics of one reservoir.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import Reservoir
from echolearn.diagnostics import echo, linearised, lyapunov, memory_capacity, ranks
from echolearn.reservoir._topologies import TOPOLOGIES

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

# %%
# Seven topologies
# ----------------
#
# All reservoirs have 100 units and, except the delay line, the same spectral radius of 0.95. Above, the eigenvalues of
# their recurrent matrices in the unit circle; below, how well the input of a number of steps ago can be recovered.
figure, grid = plt.subplots(2, len(TOPOLOGIES), figsize=(13, 4.6), layout="constrained", sharex="row", sharey="row")
for (plane, memory), name in zip(grid.T, TOPOLOGIES, strict=True):
    reservoir = Reservoir.random(1, 100, topology=name, spectral_radius=0.95, input_scaling=0.1, random_state=0)
    values = np.linalg.eigvals(reservoir.W_rec.toarray())
    plane.add_patch(plt.Circle((0, 0), 1, fill=False, color="#999999", lw=1))
    plane.plot(values.real, values.imag, "o", ms=3, color="#0072B2", alpha=0.8, mew=0)
    plane.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    plane.set_title(name, fontsize=11)
    found = memory_capacity(reservoir, delays=100)
    memory.fill_between(np.arange(101), found.by_delay, color="#0072B2", alpha=0.2, lw=0)
    memory.plot(found.by_delay, color="#0072B2", lw=1.5)
    memory.set(xlim=(0, 100), ylim=(0, 1.03), xlabel="delay in steps")
    memory.set_title(f"capacity {found.total:.0f}", fontsize=10)
grid[0, 0].set_ylabel("eigenvalues of W_rec")
grid[1, 0].set_ylabel("$r^2$ of the recalled input")
figure.suptitle("Rings and rotations remember more than twice as long as random connections")

plt.show()

# %%
# Ring, rotation (`"orthogonal"`) and delay line lose the least. The eigenvalues of the first two lie close to the unit
# circle; those of the delay line are all zero, so that eigenvalues alone do not decide on memory. `"groups"`
# and `"deep"` are made for several time scales, which one task of memory does not reward.
#
# Five diagnostics
# ----------------
#
# Every result has a method `plot`. A random reservoir with leaks from 0.1 to 1 is driven by noise.
X = np.random.default_rng(0).uniform(-1, 1, (600, 1))
reservoir = Reservoir.random(1, 100, spectral_radius=0.95, leak=(0.1, 1.0), input_scaling=0.5, random_state=0)
chaotic = Reservoir.random(1, 100, spectral_radius=4.0, leak=0.9, input_scaling=0.5, random_state=0)
results = {
    "linearised": linearised(reservoir, X),
    "lyapunov": lyapunov(reservoir, X),
    "echo": echo(reservoir, X),
    "memory_capacity": memory_capacity(reservoir),
    "ranks": ranks(reservoir),
    "echo, spectral radius 4": echo(chaotic, X),
}

figure, grid = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
for axes, (name, result) in zip(grid.flat, results.items(), strict=True):
    result.plot(axes)
    axes.set_title(f"{name}: {axes.get_title()}", fontsize=10)

plt.show()

# %%
# `linearised` gives the spectral radius of the whole step around the driven states, `lyapunov` the mean growth of a
# small disturbance (negative: it decays), and `echo` the distance between two runs from different initial states. The
# last panel shows a reservoir without the echo state property: its states depend on how they began, however long it
# runs. `memory_capacity` sums the curves of the first figure, and `ranks` compares how many directions the states
# occupy for different inputs and for inputs that only differ in the distant past.
#
# Limits
# ------
#
# Memory was measured at a small input scaling, where the units are almost linear. More memory is not better for every
# task: see the example on memory and non-linearity.
