"""
A turbulent flame front
=======================

The Kuramoto-Sivashinsky equation in one dimension of space is the usual test for forecasts of spatiotemporal chaos. A
network of 1,000 units reads all points of the front, and continues it in closed loop.

    python examples/plot_kuramoto_sivashinsky.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNForecaster
from echolearn.datasets import kuramoto_sivashinsky

known, horizon = 6000, 200
series = kuramoto_sivashinsky(known + horizon)
past, future = series[:known], series[known:]
esn = ESNForecaster(1000, learn="none", direct=True).fit(past)
path = esn.predict(horizon)
error = np.sqrt(((path - future) ** 2).mean(axis=1)) / past.std()
print(f"the error reaches 0.4 after {np.argmax(error > 0.4)} steps")

figure, panels = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
limit = np.abs(past).max()
for axes, values, title in zip(panels, (future, path, path - future), ("truth", "forecast", "difference"), strict=True):
    axes.imshow(values.T, aspect="auto", cmap="RdBu", vmin=-limit, vmax=limit, origin="lower")
    axes.axvline(np.argmax(error > 0.4), color="black", lw=1, ls="--")
    axes.set(ylabel="space", title=title)
panels[-1].set_xlabel("steps")

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
