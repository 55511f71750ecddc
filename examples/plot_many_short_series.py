"""
Many short series
=================

Eighty series of 60 steps each come from the same kind of oscillator with its own frequency and strength. One regressor
learns from all of them, and needs a few steps of a new series to find out which one it sees.

    python examples/plot_many_short_series.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor

rng = np.random.default_rng(0)


def series():
    """Return one noisy oscillation (61, 1)."""
    t = np.arange(61)
    wave = rng.uniform(0.5, 2) * np.sin(rng.uniform(0.2, 0.8) * t + rng.uniform(0, 6))
    return (wave + 0.05 * rng.standard_normal(61))[:, None]


data = [series() for _ in range(80)]
X, y = [s[:-1] for s in data], [s[1:, 0] for s in data]
fixed = ESNRegressor(100, learn="none").fit(X[:50], y[:50])
learned = ESNRegressor(100).fit(X[:50], y[:50])
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, esn, colour in (("fixed", fixed, "#d9762b"), ("learned", learned, "#2a6fb0")):
    errors = np.array([np.abs(p - t) for p, t in zip(esn.predict(X[50:]), y[50:], strict=True)]).mean(axis=0)
    axes.semilogy(errors, color=colour, label=name)
    print(f"{name}: mean error {errors[10:].mean():.3f} after ten steps")
axes.axhline(0.05 * np.sqrt(2 / np.pi), color="#777777", lw=1, ls="--")
axes.set(xlabel="steps of a new series that were seen", ylabel="mean error of the next value (dashed: the noise)")
axes.legend(frameon=False)

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
