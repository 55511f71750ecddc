"""
Classifying whole sequences
===========================

Six gestures of a pen: three figures, each drawn in one direction or the other, at any speed, from any starting point
and with noise. Averaged over time both directions look the same; they differ in the order of the points, which only the
states contain. Learning W and W_rec can change the states until a linear readout separates them. Whether it does
depends on the random weights: of six seeds it helped in three, in this one most of all
(docs/howto/classification.md lists them).

    python examples/plot_sequence_classification.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
FIGURES = {"loop": (1, 1, np.pi / 2), "eight": (1, 2, 0.0), "bow": (3, 2, 0.5)}
NAMES = [f"{figure} {direction}" for figure in FIGURES for direction in ("left", "right")]


def gesture(name):
    """Return the positions (steps, 2) of the pen at 30 to 60 points of time."""
    figure, direction = name.split()
    a, b, phase = FIGURES[figure]
    steps = rng.integers(30, 60)
    t = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi * rng.uniform(1, 1.5), steps)
    t = t if direction == "left" else -t
    pen = np.stack([np.sin(a * t + phase), np.sin(b * t)], axis=1)
    return pen + 0.15 * rng.standard_normal(pen.shape)


def gestures(count):
    """Return random gestures and their names."""
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
grid[0].set(title="six gestures, each with a dot at its start", aspect="equal", ylim=(-8, 2), xticks=[], yticks=[])
for axes, (title, esn) in zip(grid[1:], esns.items(), strict=True):
    predicted = esn.predict(X_new)
    wrong = np.mean(predicted != y_new)
    print(f"{title}: {wrong:.1%} of {len(y_new)} new gestures wrong")
    counts = np.array([[np.sum((y_new == true) & (predicted == name)) for name in NAMES] for true in NAMES])
    axes.imshow(counts, cmap="Blues", vmin=0, vmax=counts.sum(axis=1).max())
    for row, column in np.ndindex(counts.shape):
        if counts[row, column]:
            colour = "white" if counts[row, column] > 60 else "0.2"
            axes.text(column, row, counts[row, column], ha="center", va="center", color=colour)
    axes.set_xticks(range(6), NAMES, rotation=35, ha="right")
    axes.set_yticks(range(6), NAMES)
    axes.set(title=f"{title}: {wrong:.1%} wrong", xlabel="predicted", ylabel="true")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
