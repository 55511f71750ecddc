"""
Watching the recurrent matrix learn
===================================

What does learning change in a reservoir? A network of 40 tanh units receives noise and has to reproduce its input of 20
steps ago. With random weights that input is forgotten. While W and W_rec are learned, the eigenvalues of W_rec move
from a disc to a ring: the network becomes a delay line.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from echolearn import Reservoir
from echolearn.diagnostics import memory_capacity
from echolearn.gradients import loss_and_gradients
from echolearn.training.optimizers import Adam

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

DELAY, STEPS = 20, 400
rng = np.random.default_rng(0)
X = [rng.uniform(-0.5, 0.5, (120, 1)) for _ in range(10)]
T = [np.roll(x, DELAY, axis=0) for x in X]

# %%
# A training loop in ten lines
# ----------------------------
#
# `loss_and_gradients` solves the readout in closed form and returns the exact derivatives of the error with respect to
# W and W_rec through that solution. The estimators do the same inside `fit`. A loop of our own can keep the eigenvalues
# of every step.
fixed = reservoir = Reservoir.random(1, 40, spectral_radius=0.7, connections=10, input_scaling=0.5, random_state=1)
variance = sum((t[DELAY:] ** 2).sum() for t in T)
weights, optimizer = {"W": reservoir.W, "W_rec": reservoir.W_rec.data}, Adam()
losses, spectra = [], []
for step in range(STEPS + 1):
    spectra.append(np.linalg.eigvals(reservoir.W_rec.toarray()))
    g = loss_and_gradients(reservoir, X, T, ridge=1e-3, washout=DELAY)
    losses.append(g.loss / variance)
    gradients = {"W": g.dE_dW, "W_rec": g.dE_dW_rec.data}
    weights, optimizer = optimizer.step(weights, gradients, 0.01 * (1 - step / (STEPS + 1)))
    reservoir = reservoir.with_weights(**weights)
print(f"share of the variance missed: {losses[0]:.1%} with random weights, {losses[-1]:.2%} learned")

# %%
# `eigvals` returns the eigenvalues in any order. To draw their paths, each is matched with the nearest one of the step
# before.
paths = [spectra[0]]
for values in spectra[1:]:
    _, nearest = linear_sum_assignment(np.abs(paths[-1][:, None] - values))
    paths.append(values[nearest])
paths = np.array(paths)

# %%
# Four moments
# ------------
#
# Dots are the eigenvalues at a step, and lines their paths since the moment before. The grey circle is the unit circle.
moments = (0, 20, 60, STEPS)
figure = plt.figure(figsize=(11, 6.4), layout="constrained")
grid = figure.add_gridspec(2, 4, height_ratios=(1.15, 1))
for k, step in enumerate(moments):
    plane = figure.add_subplot(grid[0, k])
    plane.add_patch(plt.Circle((0, 0), 1, fill=False, color="#999999", lw=1))
    since = paths[moments[max(k - 1, 0)] : step + 1]
    plane.plot(since.real, since.imag, color="#56B4E9", lw=0.8)
    plane.plot(paths[step].real, paths[step].imag, "o", ms=4.5, color="#0072B2" if k else "#D55E00", mew=0)
    plane.set(aspect="equal", xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    plane.set(xlabel="real part", ylabel="" if k else "imaginary part")
    plane.set_title("random" if step == 0 else f"after {step} steps", fontsize=11)

curve, memory = figure.add_subplot(grid[1, :2]), figure.add_subplot(grid[1, 2:])
curve.semilogy(losses, color="#0072B2", lw=2)
for step in moments:
    curve.plot(step, losses[step], "o", ms=7, color="#0072B2" if step else "#D55E00", clip_on=False)
curve.set(xlabel="training step", ylabel="share of the variance missed", xlim=(0, STEPS))
curve.set_title(f"Error of recalling the input of {DELAY} steps ago", fontsize=11)
for name, one, colour, x, side in (
    ("random", fixed, "#D55E00", 12.5, "right"),
    ("learned", reservoir, "#0072B2", 30.5, "left"),
):
    found = memory_capacity(one, delays=40)
    memory.plot(found.by_delay, color=colour, lw=2)
    memory.text(x, 0.5, f"{name}:\ncapacity {found.total:.1f}", color=colour, ha=side)
memory.axvline(DELAY, color="#777777", lw=1, ls="--")
memory.text(DELAY - 0.6, 0.04, "the task", rotation=90, ha="right", fontsize=9, color="#555555")
memory.set(xlabel="delay in steps", ylabel="$r^2$ of the recalled input", ylim=(0, 1.03), xlim=(0, 40))
memory.set_title("Learning doubles the memory of the reservoir", fontsize=11)

plt.show()

# %%
# A ring of eigenvalues at equal angles is the spectrum of a cyclic shift: an input travels around, weaker at every
# step but separate from the others, and the readout recovers it. This solution was not prescribed; the gradient of the
# error led to it. The memory extends beyond the 20 steps of the task.
#
# Limits
# ------
#
# The task is linear and has no noise, which favours a delay line. On other tasks eigenvalues move less, and in other
# ways. The paths of eigenvalues that come close to each other may be exchanged by the matching.
