"""
Whole sequences to classes
==========================

Six gestures of a pen: three figures, each drawn one way round or the other, at any speed, from any starting point and
with a shaking hand. Averaged over time both ways of drawing look the same; what tells them apart is the order, and that
only the states know. Learning W and W_rec turns the states until a linear readout can see it.

    python examples/plot_sequence_classification.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.states import harvest

rng = np.random.default_rng(0)
FIGURES = {"loop": (1, 1), "eight": (1, 2), "bow": (3, 2)}
NAMES = [f"{figure} {way}" for figure in FIGURES for way in ("left", "right")]


def gesture(name):
    """(steps, 2): where the pen is, at 30 to 60 points of time."""
    figure, way = name.split()
    a, b = FIGURES[figure]
    steps = rng.integers(30, 60)
    t = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi * rng.uniform(1, 1.5), steps)
    t = t if way == "left" else -t
    pen = np.stack([np.sin(a * t + (np.pi / 2 if figure == "loop" else 0.5)), np.sin(b * t)], axis=1)
    return pen + 0.15 * rng.standard_normal(pen.shape)


def gestures(count):
    labels = rng.choice(NAMES, count)
    return [gesture(name) for name in labels], labels


(X, y), (X_new, y_new) = gestures(240), gestures(600)
esns = {
    "fixed": ESNClassifier(40, learn="none", input_scaling=0.5, random_state=0).fit(X, y),
    "learned": ESNClassifier(40, input_scaling=0.5, epochs=25, random_state=0).fit(X, y),
}


def spread(esn):
    """The mean state of every new gesture, seen from the two directions in which the classes' means differ most."""
    means = np.array([h.mean(axis=0) for h in harvest(esn.reservoir_, X_new)])
    centres = np.array([means[y_new == name].mean(axis=0) for name in NAMES])
    within = np.concatenate([means[y_new == n] - c for n, c in zip(NAMES, centres, strict=True)])
    whiten = np.linalg.cholesky(np.linalg.inv(np.cov(within.T) + 1e-6 * np.eye(means.shape[1])))
    axes = np.linalg.svd((centres - centres.mean(axis=0)) @ whiten)[2][:2]
    return (means - means.mean(axis=0)) @ whiten @ axes.T


figure, grid = plt.subplots(1, 3, figsize=(13.5, 4.4), layout="constrained")
for k, name in enumerate(NAMES):
    x = gesture(name) + [3.2 * (k % 2), -3 * (k // 2)]
    grid[0].plot(*x.T, color=f"C{k}", lw=1)
    grid[0].plot(*x[0], "o", color=f"C{k}")
    grid[0].text(*(x.mean(axis=0) + [0, 1.25]), name, ha="center", fontsize=9)
grid[0].set(title="six gestures, a dot where the pen begins", aspect="equal", xticks=[], yticks=[])
for axes, (title, esn) in zip(grid[1:], esns.items(), strict=True):
    wrong = 1 - esn.score(X_new, y_new)
    print(f"{title}: {wrong:.1%} of {len(y_new)} new gestures wrong")
    points = spread(esn)
    for k, name in enumerate(NAMES):
        axes.scatter(*points[y_new == name].T, s=9, color=f"C{k}", lw=0, label=name)
    axes.set(title=f"mean states, {title}: {wrong:.1%} wrong", xticks=[], yticks=[])
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
