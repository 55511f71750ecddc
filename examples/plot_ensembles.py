"""
Several small networks or one large one
=======================================

`ensemble=k` divides the units into k networks that are learned apart and answer by their mean. Here 240 units are one
network, or up to eight, on a task of memory and products with few training sequences.

    python examples/plot_ensembles.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
X = [rng.standard_normal((80, 2)) for _ in range(240)]
y = [x[:, 0] * np.roll(x[:, 0], 2) + 0.5 * rng.standard_normal(len(x)) > 0 for x in X]
counts, errors = (1, 2, 4, 8), []
for count in counts:
    found = [
        1 - ESNClassifier(240, ensemble=count, random_state=seed).fit(X[:40], y[:40]).score(X[40:], y[40:])
        for seed in range(3)
    ]
    errors.append(found)
    print(f"{count} networks of {240 // count} units: {np.mean(found):.1%} of the steps are wrong")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for seed in range(3):
    axes.plot(counts, [100 * found[seed] for found in errors], "o", color="#2a6fb0", alpha=0.5)
axes.plot(counts, [100 * np.mean(found) for found in errors], color="#2a6fb0")
axes.set(xscale="log", xlabel="networks", ylabel="steps wrong in % (three seeds, and their mean)")
axes.set_xticks(counts, counts)
axes.minorticks_off()

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
