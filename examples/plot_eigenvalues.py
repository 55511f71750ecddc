"""
Learning the recurrent matrix: how its eigenvalues move
=======================================================

A reservoir of 40 tanh units receives noise and has to reproduce its input of 20 steps ago. With random weights most of
it is lost: the eigenvalues are scattered in a disc, and each of them forgets. `loss_and_gradients` returns the exact
derivative of the error by W and W_rec through the closed-form readout, and a plain loop of Adam steps follows it. The
eigenvalues move outward and spread evenly along a circle: the network is becoming a delay line.

    python examples/plot_eigenvalues.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import Reservoir
from echolearn.diagnostics import memory_capacity
from echolearn.gradients import loss_and_gradients
from echolearn.training.optimizers import Adam

DELAY, STEPS, EVERY = 20, 400, 8
rng = np.random.default_rng(0)
X = [rng.uniform(-0.5, 0.5, (120, 1)) for _ in range(10)]
T = [np.roll(x, DELAY, axis=0) for x in X]

fixed = reservoir = Reservoir.random(1, 40, spectral_radius=0.7, connections=10, input_scaling=0.5, random_state=1)
variance = sum((t[DELAY:] ** 2).sum() for t in T)
weights, optimizer = {"W": reservoir.W, "W_rec": reservoir.W_rec.data}, Adam()
losses, spectra = [], []
for step in range(STEPS + 1):
    if step % EVERY == 0:
        spectra.append(np.linalg.eigvals(reservoir.W_rec.toarray()))
    g = loss_and_gradients(reservoir, X, T, ridge=1e-3, washout=DELAY)
    losses.append(g.loss / variance)
    gradients = {"W": g.dE_dW, "W_rec": g.dE_dW_rec.data}
    weights, optimizer = optimizer.step(weights, gradients, 0.01 * (1 - step / (STEPS + 1)))
    reservoir = reservoir.with_weights(**weights)

figure = plt.figure(figsize=(10.5, 6), layout="constrained")
grid = figure.add_gridspec(2, 2, width_ratios=(1.55, 1))
plane, curve, memory = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
shades = plt.get_cmap("viridis_r")(np.linspace(0.05, 1, len(spectra)))
for k, (values, shade) in enumerate(zip(spectra, shades, strict=True)):
    plane.scatter(values.real, values.imag, s=40 if k == len(spectra) - 1 else 4, color=shade, lw=0, zorder=k)
plane.scatter(spectra[0].real, spectra[0].imag, s=34, facecolors="none", edgecolors="#c0392b", lw=1.2, zorder=99)
plane.add_patch(plt.Circle((0, 0), 1, fill=False, color="#999999", lw=1))
plane.set(aspect="equal", xlabel="real part", ylabel="imaginary part")
plane.set_title("eigenvalues of W_rec: random (red rings), while learning (light to dark)", fontsize=10)
curve.semilogy(losses, color="#2a6fb0", lw=2)
curve.set(xlabel="step", ylabel="share of the variance missed")
curve.set_title(f"recalling the input {DELAY} steps ago", fontsize=10)
capacity = {}
for name, r, colour in (("random", fixed, "#c0392b"), ("learned", reservoir, "#2a6fb0")):
    found = memory_capacity(r, delays=40)
    capacity[name] = found.total
    memory.plot(found.by_delay, color=colour, lw=2)
memory.set_title(f"memory capacity {capacity['random']:.1f} random, {capacity['learned']:.1f} learned", fontsize=10)
memory.axvline(DELAY, color="#999999", lw=1, ls="--")
memory.set(xlabel="delay in steps", ylabel="$r^2$ of the recalled input", ylim=(0, 1.03))
for axes in (plane, curve, memory):
    axes.spines[["top", "right"]].set_visible(False)

print(f"share of the variance missed: {losses[0]:.1%} with random weights, {losses[-1]:.1%} learned")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
