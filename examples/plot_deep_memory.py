"""
Depth and angles
================

How far back can a network compare two inputs? The label of a step says whether the input has the sign that it had d
steps before. For this a network has to keep that one input apart from all others, and then needs a product of two
inputs. One layer of 100 units is compared with deep networks of two layers of 32 units, whose pairs of units turn by an
angle at every step.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import DeepESNClassifier, ESNClassifier

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
X = [rng.standard_normal((100, 1)) for _ in range(130)]


def labels(x, delay):
    """Return 1 where x has the sign of `delay` steps before, 0 where it has not, -1 where there is nothing before."""
    same = x[delay:, 0] * x[:-delay, 0] > 0
    return np.concatenate([np.full(delay, -1), same])


# %%
# One fit for each delay
# ----------------------
#
# All weights of all networks are learned, leaks and angles too. `angle` is the largest angle with which pairs of units
# start; some pairs start with none. With `angle=0.0` all angles are zero at the start, and are learned from there. The
# first d steps of a sequence have no label. They are marked with -1: nothing is learned from them, and `score` does not
# count them.
small = {"units": 32, "layers": 2, "epochs": 25, "ignore_label": -1}
networks = {
    "one layer": ESNClassifier(100, ignore_label=-1),
    "deep, angles start at 0": DeepESNClassifier(**small, angle=0.0),
    "deep, angles start up to 1": DeepESNClassifier(**small, angle=1.0),
    "deep, angles start up to π": DeepESNClassifier(**small, angle=np.pi),
}
delays = (1, 4, 8, 12, 20)
errors = {name: [] for name in networks}
for delay in delays:
    y = [labels(x, delay) for x in X]
    for name, network in networks.items():
        network.fit(X[:80], y[:80])
        errors[name].append(100 * (1 - network.score(X[80:], y[80:])))
for name, values in errors.items():
    print(f"{name:>26}:", "  ".join(f"{value:4.1f}" for value in values), "% of the steps wrong")

# %%
figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
colours = ("#D55E00", "#999999", "#56B4E9", "#0072B2")
for (name, values), colour, mark in zip(errors.items(), colours, "s^vo", strict=True):
    axes.plot(delays, values, mark + "-", color=colour, lw=2, ms=7, label=name, clip_on=False)
axes.axhline(50, color="#777777", lw=1, ls=":", label="guessing")
axes.set(xlabel="delay d in steps", ylabel="wrong labels of new sequences in %")
axes.set(xlim=(0.5, 20.5), ylim=(0, 53), xticks=delays)
axes.set_title("Has the input the sign that it had d steps before?")
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.93))

plt.show()

# %%
# At eight steps one layer labels about a quarter of the steps wrong, and more at longer delays. The deep network whose
# angles start at zero has hardly any errors at one step, more than one layer at four, and not many fewer from eight on:
# depth alone is not sufficient. With angles that start up to 1 it has fewer errors than one layer at every delay. With
# angles up to π it has hardly any errors up to twelve steps, and labels about a tenth of the steps wrong at twenty. A
# pair that turns by θ at every step has turned an input of d steps ago by dθ, so that inputs of different ages arrive
# at different angles.
#
# Limits
# ------
#
# The inputs are noise, and each label depends on one step of the past: a task for sharp memory. Where labels depend on
# slow changes, leaks are what matters. Every network was fitted once, with one seed. The deep networks have more
# weights than the one layer.
