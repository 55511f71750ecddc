"""
Gestures from an accelerometer
==============================

Can a network recognise gestures of any length if it is given one label per recording and nothing else? Four gestures
are recorded by a sensor with three axes at 50 frames per second. Lengths and strengths vary, every recording has an
offset of its own, and there is noise. "left" and "right" have the same movements in opposite order.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import confusion_matrix

from echolearn import SeriesClassifier

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
NAMES = ["left", "right", "push", "double tap"]


def record(gesture):
    """Return one recording (steps, 3), in units of g."""
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


# %%
# One label per recording
# -----------------------
#
# `fit` takes a list of recordings of any lengths and one label for each.
labels = rng.choice(NAMES, 560)
X = [record(name) for name in labels]
train, test = slice(0, 160), slice(160, None)
esn = SeriesClassifier(100).fit(X[train], labels[train])
answers = esn.predict(X[test])
table = confusion_matrix(labels[test], answers, labels=NAMES)
right = np.trace(table) / table.sum()
print(f"{right:.1%} of {table.sum()} new recordings are right")

# %%
# Two recordings of each gesture, and the answers
# -----------------------------------------------
figure = plt.figure(figsize=(11, 6.4), layout="constrained")
grid = figure.add_gridspec(4, 3, width_ratios=(1, 1, 1.5))
lines = dict(zip("xyz", ("#0072B2", "#D55E00", "black"), strict=True))
for row, name in enumerate(NAMES):
    for column, k in enumerate(np.flatnonzero(labels == name)[:2]):
        axes = figure.add_subplot(grid[row, column])
        for values, (axis, colour) in zip(X[k].T, lines.items(), strict=True):
            axes.plot(np.arange(len(values)) / 50, values, color=colour, lw=1.1, label=axis)
        axes.set(ylim=(-2.6, 2.8), xlim=(0, 1.8), xticks=(0, 1))
        axes.set_title(name, loc="left", fontsize=10, pad=2)
        axes.tick_params(labelbottom=row == 3, labelleft=column == 0)
        if row == 3:
            axes.set_xlabel("time in seconds")
        if column == 0 and row == 1:
            axes.set_ylabel("acceleration in g")
        if column == 1 and row == 0:
            axes.legend(frameon=False, ncols=3, fontsize=9, loc="lower right", bbox_to_anchor=(1.02, 0.95))
matrix = figure.add_subplot(grid[:, 2])
matrix.imshow(table, cmap="Blues")
for i, j in np.ndindex(table.shape):
    colour = "white" if table[i, j] > table.max() / 2 else "black"
    matrix.text(j, i, table[i, j], ha="center", va="center", color=colour, fontsize=12)
matrix.set_xticks(range(4), NAMES)
matrix.set_yticks(range(4), NAMES, rotation=90, va="center")
matrix.set(xlabel="answer of the network", ylabel="gesture")
matrix.set_title(f"{right:.0%} of {table.sum()} new recordings are right")

plt.show()

# %%
# The order of movements, "left" against "right", is hardly ever confused. With one label per recording, the readout
# receives a summary of the states over time (their mean, deviation, extremes and more), and the states depend on the
# order of the inputs. The weights of such a network are not learned. Most errors are between one long push and two
# short taps.
#
# Limits
# ------
#
# The gestures are simulated. The guide on classification compares networks on recorded movements and other
# public data.
