"""
Gestures from an accelerometer
==============================

Four gestures differ in the order of their movements. Their lengths and strengths vary, and every sensor has an offset
of its own. One label per recording is all that the classifier is given.

    python examples/plot_gestures.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.metrics import confusion_matrix

rng = np.random.default_rng(0)
NAMES = ["left", "right", "push", "double tap"]


def record(gesture):
    """Return one recording (steps, 3)."""
    t = np.linspace(0, 1, rng.integers(40, 90))
    x, y, z = np.zeros((3, len(t)))
    if gesture in ("left", "right"):
        turn = 2 * np.pi * (t + rng.random())
        x, y = np.cos(turn), np.sin(turn) * (1 if gesture == "left" else -1)
    elif gesture == "push":
        z = np.exp(-((t - 0.5) ** 2) / 0.02)
    else:
        z = np.exp(-((t - 0.35) ** 2) / 0.003) + np.exp(-((t - 0.65) ** 2) / 0.003)
    signal = rng.uniform(0.6, 1.4) * np.column_stack([x, y, z])
    return signal + rng.normal(0, 0.4, 3) + rng.normal(0, 0.3, (len(t), 3))


labels = rng.choice(NAMES, 240)
X = [record(name) for name in labels]
esn = ESNClassifier(100).fit(X[:160], labels[:160])
answers = esn.predict(X[160:])
table = confusion_matrix(labels[160:], answers, labels=NAMES)
print(f"{np.trace(table) / table.sum():.1%} of {table.sum()} new recordings are right")

figure = plt.figure(figsize=(10, 4), layout="constrained")
grid = figure.add_gridspec(4, 2, width_ratios=(1.6, 1))
for row, name in enumerate(NAMES):
    axes = figure.add_subplot(grid[row, 0])
    axes.plot(X[list(labels).index(name)], lw=1)
    axes.set(ylabel=name, yticks=[])
matrix = figure.add_subplot(grid[:, 1])
matrix.imshow(table, cmap="Blues")
for i, j in np.ndindex(table.shape):
    matrix.text(j, i, table[i, j], ha="center", va="center", color="white" if table[i, j] > 12 else "black")
matrix.set_xticks(range(4), NAMES, rotation=30)
matrix.set_yticks(range(4), NAMES)
matrix.set(xlabel="answer", ylabel="gesture")

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
