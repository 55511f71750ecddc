"""
When sensors fail
=================

A share of the measurements is lost. `missing="carry"` keeps the last known value, and tells the network that it is old.

    python examples/plot_missing_inputs.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor
from echolearn.datasets import mackey_glass

series = mackey_glass(3000)
rng = np.random.default_rng(0)
shares, scores = np.linspace(0, 0.6, 7), {"carry": [], "mean": []}
for share in shares:
    X, y = series[:-5].copy(), series[5:, 0]
    X[rng.random(len(X)) < share] = np.nan
    for way, found in scores.items():
        esn = ESNRegressor(200, learn="none", missing=way).fit(X[:2000], y[:2000])
        found.append(1 - esn.score(X[2000:], y[2000:]))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (way, found), colour in zip(scores.items(), ("#2a6fb0", "#d9762b"), strict=True):
    axes.semilogy(100 * shares, found, "o-", color=colour, label=f'missing="{way}"')
axes.set(xlabel="measurements lost in %", ylabel="unexplained variance, five steps ahead")
axes.legend(frameon=False)

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
