"""
Learned time constants
======================

Every unit has a leak, the rate at which it follows its input. The target here mixes a fast and a very slow average of
the input. The leaks are drawn from one narrow range, and learning spreads them: some units become slow.

    python examples/plot_time_scales.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor

rng = np.random.default_rng(0)


def averages(u, rate):
    """Return the running average of u at a rate."""
    result, value = np.empty(len(u)), 0.0
    for t, x in enumerate(u[:, 0]):
        value += rate * (x - value)
        result[t] = value
    return result


X = [rng.standard_normal((400, 1)) for _ in range(30)]
y = [averages(x, 0.7) + 6 * averages(x, 0.02) for x in X]
settings = {"leak": (0.2, 0.6), "washout": 50, "spectral_radius": 0.5}
fixed = ESNRegressor(40, learn="none", **settings).fit(X[:20], y[:20])
learned = ESNRegressor(40, epochs=60, **settings).fit(X[:20], y[:20])
print(
    f"R² {fixed.score(X[20:], y[20:]):.3f} with the leaks that were drawn, {learned.score(X[20:], y[20:]):.3f} learned"
)

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
bins = np.geomspace(0.01, 1, 30)
axes.hist(fixed.reservoir_.leak, bins, color="#d9762b", alpha=0.7, label="drawn")
axes.hist(learned.reservoir_.leak, bins, color="#2a6fb0", alpha=0.7, label="learned")
for rate in (0.7, 0.02):
    axes.axvline(rate, color="#777777", lw=1, ls="--")
axes.set(xscale="log", xlabel="leak of a unit (dashed: the two rates of the task)", ylabel="units")
axes.legend(frameon=False)

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
