"""
Whole sequences to classes
==========================

Six gestures of a pen: three figures, each drawn one way round or the other, at any speed, from any starting point and
with a shaking hand. Averaged over time both ways of drawing look the same; what tells them apart is the order, and that
only the states know. Learning W and W_rec can turn the states until a linear readout sees it. Whether it does depends
on the draw: of six seeds it helped in three, this one among them, and more here than in the others
(docs/classification.md has them all).

    python examples/plot_sequence_classification.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
FIGURES = {"loop": (1, 1, np.pi / 2), "eight": (1, 2, 0.0), "bow": (3, 2, 0.5)}
NAMES = [f"{figure} {way}" for figure in FIGURES for way in ("left", "right")]


def gesture(name):
    """(steps, 2): where the pen is, at 30 to 60 points of time."""
    figure, way = name.split()
    a, b, phase = FIGURES[figure]
    steps = rng.integers(30, 60)
    t = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi * rng.uniform(1, 1.5), steps)
    t = t if way == "left" else -t
    pen = np.stack([np.sin(a * t + phase), np.sin(b * t)], axis=1)
    return pen + 0.15 * rng.standard_normal(pen.shape)


def gestures(count):
    labels = rng.choice(NAMES, count)
    return [gesture(name) for name in labels], labels


(X, y), (X_new, y_new) = gestures(240), gestures(600)
esns = {
    "fixed": ESNClassifier(40, learn="none", input_scaling=0.5, random_state=0).fit(X, y),
    "learned": ESNClassifier(40, input_scaling=0.5, epochs=25, refine_epochs=0, random_state=0).fit(X, y),
}


figure, grid = plt.subplots(1, 3, figsize=(13.5, 4.6), layout="constrained")
for k, name in enumerate(NAMES):
    x = gesture(name) + np.array([3.2 * (k % 2), -3.2 * (k // 2)])
    grid[0].plot(*x.T, color=f"C{k}", lw=1)
    grid[0].plot(*x[0], "o", color=f"C{k}")
    grid[0].text(3.2 * (k % 2), 1.35 - 3.2 * (k // 2), name, ha="center", fontsize=9)
grid[0].set(title="six gestures, a dot where the pen begins", aspect="equal", ylim=(-8, 2), xticks=[], yticks=[])
for axes, (title, esn) in zip(grid[1:], esns.items(), strict=True):
    heard = esn.predict(X_new)
    wrong = np.mean(heard != y_new)
    print(f"{title}: {wrong:.1%} of {len(y_new)} new gestures wrong")
    counts = np.array([[np.sum((y_new == drawn) & (heard == seen)) for seen in NAMES] for drawn in NAMES])
    axes.imshow(counts, cmap="Blues", vmin=0, vmax=counts.sum(axis=1).max())
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            colour = "white" if counts[row, column] > 60 else "0.2"
            axes.text(column, row, counts[row, column], ha="center", va="center", color=colour)
    axes.set_xticks(range(6), NAMES, rotation=35, ha="right")
    axes.set_yticks(range(6), NAMES)
    axes.set(title=f"{title}: {wrong:.1%} wrong", xlabel="taken for", ylabel="drawn")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
