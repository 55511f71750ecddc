"""
Searching settings
==================

Optuna proposes leaks and input scalings, and held-out sequences decide. The task needs slow units; the search finds
them.

    python examples/plot_tuning.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.tuning import tune

rng = np.random.default_rng(0)
X = [rng.standard_normal((120, 1)) for _ in range(40)]
y = [np.cumsum(x[:, 0]) * 0.05 + 0.2 * rng.standard_normal(len(x)) > 0 for x in X]
space = {"leak": (0.01, 1.0), "input_scaling": (0.01, 2.0)}
found = tune(ESNClassifier(60, learn="none"), X, y, space=space, trials=30, random_state=0)
print(found.best_settings, f"{found.best_score:.3f}")

trials = [trial for trial in found.trials if trial.score is not None]
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
points = axes.scatter(
    [trial.settings["leak"] for trial in trials],
    [trial.settings["input_scaling"] for trial in trials],
    c=[100 * trial.score for trial in trials],
    cmap="viridis",
    s=60,
)
axes.plot(found.best_settings["leak"], found.best_settings["input_scaling"], "o", ms=14, mfc="none", mec="#d03030")
figure.colorbar(points, label="labels right on held-out sequences, in %")
axes.set(xscale="log", yscale="log", xlabel="leak", ylabel="input scaling")

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
