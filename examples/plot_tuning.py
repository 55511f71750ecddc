"""
Searching settings
==================

How are good settings found, and what does a search gain beside learning? The task has two inputs. The label of a step
is the sign of a slow average of the first input times the sign of the second. It needs memory, which the leak decides,
and a product, for which the inputs must reach the non-linear part of tanh.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.tuning import tune

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)


def slow_average(u, rate=0.1):
    """Return the running average of u that moves by `rate` towards every new value."""
    result, value = np.empty(len(u)), 0.0
    for t, x in enumerate(u):
        value += rate * (x - value)
        result[t] = value
    return result


X = [rng.standard_normal((120, 2)) for _ in range(80)]
y = [slow_average(x[:, 0]) * x[:, 1] > 0 for x in X]
(X, y), (X_new, y_new) = (X[:40], y[:40]), (X[40:], y[40:])

# %%
# Thirty trials
# -------------
#
# `tune` uses Optuna to propose settings, and decides by cross-validation on the sequences that it is given. A pair of
# numbers is a range that is searched on a logarithmic scale. New sequences are used only afterwards.
space = {"leak": (0.01, 1.0), "input_scaling": (0.01, 2.0)}
found = tune(ESNClassifier(60, learn="none"), X, y, space=space, trials=30, random_state=0)
best = found.best_settings
print(f"best: leak {best['leak']:.2f}, input scaling {best['input_scaling']:.2f}")

# %%
# Beside the search: the same network with default settings, and one with default settings whose weights are learned.
networks = {
    "fixed, default settings": ESNClassifier(60, learn="none"),
    "fixed, settings found": ESNClassifier(60, learn="none", **best),
    "learned, default settings": ESNClassifier(60),
}
scores = {name: 100 * esn.fit(X, y).score(X_new, y_new) for name, esn in networks.items()}
for name, score in scores.items():
    print(f"{name}: {score:.1f} % of the labels of new sequences are right")

# %%
# Where good settings lie
# -----------------------
trials = [trial for trial in found.trials if trial.score is not None]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1.5, 1))
points = left.scatter(
    [trial.settings["leak"] for trial in trials],
    [trial.settings["input_scaling"] for trial in trials],
    c=[100 * trial.score for trial in trials],
    cmap="viridis",
    s=70,
)
left.plot(best["leak"], best["input_scaling"], "o", ms=15, mfc="none", mec="black", mew=1.5)
figure.colorbar(points, label="right labels in %, cross-validated")
left.set(xscale="log", yscale="log", xlabel="leak", ylabel="input scaling")
left.set_title("The search settles where both settings are right (ring: best)")
bars = right.barh(list(scores), list(scores.values()), color=("#999999", "#D55E00", "#0072B2"))
right.bar_label(bars, fmt="%.0f %%", padding=3)
right.axvline(50, color="#777777", lw=1, ls="--")
right.set(xlabel="right labels in % (dashed: guessing)", xlim=(40, 103))
right.invert_yaxis()
right.set_title("Learning gains more than tuning here")

plt.show()

# %%
# The first trials are spread over the whole space, and later ones gather where scores are high. The settings that were
# found help on new sequences too. Learning the weights at default settings helps much more.
#
# Limits
# ------
#
# Thirty trials of two settings are a small search, with one seed. A search of four settings, with the spectral radius
# and the scaling of the biases (40 trials), reached 78 to 80 % with three seeds of the data, where learning reached 89
# to 93 % (measured by hand). The score of the best trial is slightly optimistic,
# because it was selected; report the score on new sequences. More settings need more trials.
