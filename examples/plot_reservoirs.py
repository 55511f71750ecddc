"""
Reservoirs: topologies and diagnostics
======================================

First the seven topologies: their eigenvalues and how long each remembers. Then all diagnostics of one reservoir.

    python examples/plot_reservoirs.py [topologies.png diagnostics.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import Reservoir
from echolearn.diagnostics import echo, linearised, lyapunov, memory_capacity, ranks
from echolearn.reservoir.topologies import TOPOLOGIES

figure, grid = plt.subplots(2, len(TOPOLOGIES), figsize=(15, 4.8), layout="constrained", height_ratios=(1, 0.8))
for (plane, memory), name in zip(grid.T, TOPOLOGIES, strict=True):
    reservoir = Reservoir.random(1, 100, topology=name, spectral_radius=0.95, input_scaling=0.1, random_state=0)
    values = np.linalg.eigvals(reservoir.W_rec.toarray())
    plane.add_patch(plt.Circle((0, 0), 1, fill=False, color="#999999", lw=1))
    plane.scatter(values.real, values.imag, s=9, color="#2a6fb0", alpha=0.8, lw=0)
    plane.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    plane.set_title(name, fontsize=11)
    found = memory_capacity(reservoir, delays=100)
    memory.fill_between(np.arange(101), found.by_delay, color="#2a6fb0", alpha=0.25, lw=0)
    memory.plot(found.by_delay, color="#2a6fb0", lw=1.5)
    memory.set(xlim=(0, 100), ylim=(0, 1.03), xlabel=f"delay; capacity {found.total:.0f}", yticks=(0, 1))
grid[0, 0].set_ylabel("eigenvalues of W_rec")
grid[1, 0].set_ylabel("memory, $r^2$")

X = np.random.default_rng(0).uniform(-1, 1, (600, 1))
reservoir = Reservoir.random(1, 100, spectral_radius=0.95, leak=(0.1, 1.0), input_scaling=0.5, random_state=0)
second, grid = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
diagnostics = [
    linearised(reservoir, X),
    lyapunov(reservoir, X),
    echo(reservoir, X),
    memory_capacity(reservoir),
    ranks(reservoir),
]
for axes, result in zip(grid.flat, diagnostics, strict=False):
    result.plot(axes)
chaotic = Reservoir.random(1, 100, spectral_radius=4.0, leak=0.9, input_scaling=0.5, random_state=0)
echo(chaotic, X).plot(grid[1, 2])
grid[1, 2].set_title(f"spectral radius 4: {grid[1, 2].get_title()}", fontsize=10)

if len(sys.argv) > 1:
    for page, path, dpi in zip((figure, second), sys.argv[1:], (75, 58), strict=False):
        page.savefig(path, dpi=dpi)
else:
    plt.show()
