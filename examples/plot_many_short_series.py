"""
Many short series
=================

Can a network learn from many short series what none of them shows alone? Eighty series of 61 steps come from the same
kind of oscillator, each with its own frequency, phase and strength. One regressor learns from all of them to predict
the next value. In a new series it has to find out within a few steps which oscillator it has before it.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
NOISE = 0.05


def series():
    """Return one noisy oscillation (61, 1)."""
    t = np.arange(61)
    wave = rng.uniform(0.5, 2) * np.sin(rng.uniform(0.2, 0.8) * t + rng.uniform(0, 6))
    return (wave + NOISE * rng.standard_normal(61))[:, None]


data = [series() for _ in range(380)]
X, y = [s[:-1] for s in data], [s[1:, 0] for s in data]
train, test = slice(0, 80), slice(80, None)

# %%
# One fit for all series
# ----------------------
networks = {
    "fixed weights": ESNRegressor(100, learn="none").fit(X[train], y[train]),
    "learned weights": ESNRegressor(100).fit(X[train], y[train]),
}
answers = {name: np.array(esn.predict(X[test])).reshape(300, 60) for name, esn in networks.items()}
errors = {name: np.sqrt(np.mean((found - np.array(y[test])) ** 2, axis=0)) for name, found in answers.items()}
for name, error in errors.items():
    print(f"{name}: error {error[20:].mean():.3f} after 20 steps, of which noise alone makes {NOISE}")

# %%
# Left, three new series and the predictions of the learned network, each made one step before. Right, the mean error
# over 300 new series.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for k, colour in enumerate(("#0072B2", "#D55E00", "#009E73")):
    left.plot(np.arange(1, 61), y[test][k] + 4 * k, color=colour, lw=1.5)
    left.plot(np.arange(1, 61), answers["learned weights"][k] + 4 * k, "o", ms=3, color="black", zorder=3)
left.set(xlabel="step", yticks=[], ylabel="value (series are shifted)", xlim=(0, 60))
left.set_title("Three new series and their predictions (dots)")
for (name, error), colour, style in zip(errors.items(), ("#D55E00", "#0072B2"), ("--", "-"), strict=True):
    right.semilogy(np.arange(1, 61), error, color=colour, ls=style, lw=2, label=name)
right.axhline(NOISE, color="#777777", lw=1, ls=":", label="noise: the lower limit")
right.set_yticks((0.05, 0.1, 0.2, 0.5), ("0.05", "0.1", "0.2", "0.5"))
right.yaxis.set_minor_locator(plt.NullLocator())
right.set(xlabel="steps received of a new series", ylabel="error of the next value (RMS)", xlim=(0, 60))
right.set_title("Ten steps suffice to recognise an oscillator")
right.legend(frameon=False)

plt.show()

# %%
# The first predictions are poor, because one value says nothing about frequency and phase. After about ten steps the
# error changes little. Learned weights come closer to the noise than fixed ones.
#
# Limits
# ------
#
# All oscillators are of the same family, and the new series have frequencies that occur in training. Series of
# different kinds need more units, or a network for each kind.
