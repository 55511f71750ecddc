"""
Learned time constants
======================

Can a network find out how slow its units have to be? Every unit has a leak: the share by which its state moves towards
its new value in one step. Small leaks make slow units. Here the target mixes a fast and a very slow running average of
the input, and all leaks are drawn from a range that contains neither rate.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
FAST, SLOW = 0.7, 0.02


def running_average(u, rate):
    """Return the running average of u that moves by `rate` towards every new value."""
    result, value = np.empty(len(u)), 0.0
    for t, x in enumerate(u[:, 0]):
        value += rate * (x - value)
        result[t] = value
    return result


X = [rng.standard_normal((400, 1)) for _ in range(30)]
y = [running_average(x, FAST) + 6 * running_average(x, SLOW) for x in X]

# %%
# Fit the readout alone, and everything
# -------------------------------------
#
# With `learn="none"` the leaks stay as drawn. Otherwise they are learned together with the weights
# (`learn_leak` in `learning`, the default).
settings = {"leak": (0.2, 0.6), "washout": 50, "spectral_radius": 0.5}
fixed = ESNRegressor(40, learn="none", **settings).fit(X[:20], y[:20])
learned = ESNRegressor(40, epochs=60, **settings).fit(X[:20], y[:20])
scores = {"as drawn": fixed.score(X[20:], y[20:]), "learned": learned.score(X[20:], y[20:])}
for name, score in scores.items():
    print(f"leaks {name}: R² = {score:.4f} on new sequences")

# %%
# What has changed
# ----------------
#
# Left, the leaks of the 40 units in increasing order. Right, the error on one new sequence after the
# washout. The standard deviation of the target is about 0.8.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1, 1.3))
for name, esn, colour, marker in (("as drawn", fixed, "#D55E00", "s"), ("learned", learned, "#0072B2", "o")):
    left.semilogy(np.sort(esn.reservoir_.leak), marker, ms=5, color=colour, label=name)
    error = y[20] - esn.predict(X[20]).ravel()
    right.plot(np.arange(50, 400), error[50:], color=colour, lw=1.5, label=f"{name}: R² = {scores[name]:.4f}")
for rate, text in ((FAST, "fast rate of the target"), (SLOW, "slow rate of the target")):
    left.axhline(rate, color="#777777", lw=1, ls="--")
    left.text(0, 1.05 * rate, text, fontsize=9, color="#555555")
left.set(xlabel="unit, ordered by leak", ylabel="leak", ylim=(0.015, 1))
left.set_title("Some units have become slower")
left.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.15))
right.axhline(0, color="#777777", lw=1, ls=":")
right.set(xlabel="step", ylabel="target less prediction", xlim=(50, 400), ylim=(-1.2, 1.6))
right.set_title("The slow part of the target is no longer missed")
right.legend(frameon=False, loc="upper left")

plt.show()

# %%
# A quarter of the units now lies below the range that the leaks were drawn from. None is as slow as the slow average:
# the recurrent weights can make a network slower than each of its units, and they were learned as well.
#
# Limits
# ------
#
# The leaks cannot be read as the time constants of the task, as the picture shows. With leaks that are drawn from a
# wide range, such as `leak=(0.01, 1)`, the fixed network would have slow units from the start.
