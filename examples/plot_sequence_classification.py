"""
Classifying whole series
========================

If a whole series has one label, what should the readout receive of its states? A pen draws three figures, each in one
of two directions, at any speed, from any starting point and with noise. Averaged over time, the inputs of both
directions are the same. They differ in the order of the points, which only the states of a network contain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from echolearn import ReservoirFeatures, SeriesClassifier

FIGURES = {"loop": (1, 1, np.pi / 2), "eight": (1, 2, 0.0), "bow": (3, 2, 0.5)}
NAMES = [f"{figure} {direction}" for figure in FIGURES for direction in ("left", "right")]


def gesture(name, rng):
    """Return the positions (steps, 2) of the pen at 30 to 60 points of time."""
    figure, direction = name.split()
    a, b, phase = FIGURES[figure]
    steps = rng.integers(30, 60)
    t = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi * rng.uniform(1, 1.5), steps)
    t = t if direction == "left" else -t
    pen = np.stack([np.sin(a * t + phase), np.sin(b * t)], axis=1)
    return pen + 0.15 * rng.standard_normal(pen.shape)


def gestures(count, rng):
    """Return random gestures and their names."""
    labels = rng.choice(NAMES, count)
    return [gesture(name, rng) for name in labels], labels


# %%
# Five ways, eight repetitions
# ----------------------------
#
# One comparison can be luck. Each repetition has new data and new networks of 80 units: 240 series to learn from, and
# 600 to test. The first way has no network: a logistic regression of the mean position of the pen. The next three have
# the states of a fixed reservoir, of which the regression receives the mean over time, the last one, or the means over
# four parts of time. The fifth is a `SeriesClassifier` with four sets of 40 units: its readout sees a summary of the
# states (mean, deviation, extremes, last state and shares of time above thresholds).


def mean_position(X):
    """Return the mean of each series."""
    return np.array([x.mean(axis=0) for x in X])


def of_states(pooling, seed):
    """Return a logistic regression of the states of a reservoir."""
    states = ReservoirFeatures(hidden_units=80, pooling=pooling, random_state=seed)
    return make_pipeline(states, StandardScaler(), LogisticRegression(max_iter=1000))


kinds = {
    "mean of\ninputs": lambda seed: make_pipeline(FunctionTransformer(mean_position), LogisticRegression()),
    "mean of\nstates": lambda seed: of_states("mean", seed),
    "last\nstate": lambda seed: of_states("last", seed),
    "means of\nfour parts": lambda seed: of_states(4, seed),
    "summary": lambda seed: SeriesClassifier(40, random_state=seed),
}
seeds, errors = range(8), {name: [] for name in kinds}
for seed in seeds:
    rng = np.random.default_rng(seed)
    (X, y), (X_new, y_new) = gestures(240, rng), gestures(600, rng)
    models = {name: make(seed).fit(X, y) for name, make in kinds.items()}
    for name, model in models.items():
        errors[name].append(100 * (1 - model.score(X_new, y_new)))
for name, found in errors.items():
    text = name.replace("\n", " ")
    print(f"{text}: {np.mean(found):.1f} % wrong on average, from {min(found):.1f} to {max(found):.1f} %")

# %%
# The gestures, the errors of all repetitions, and what the mean of the states confuses in the last one.
predicted = models["mean of\nstates"].predict(X_new)
counts = np.array([[np.sum((y_new == true) & (predicted == name)) for name in NAMES] for true in NAMES])

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained", width_ratios=(2, 3, 3))
for k, name in enumerate(NAMES):
    x = gesture(name, rng) + np.array([3.2 * (k % 2), -3.2 * (k // 2)])
    left.scatter(*x.T, c=np.arange(len(x)), cmap="viridis", s=7, zorder=2)
    left.plot(*x.T, color="#BBBBBB", lw=1, zorder=1)
    left.text(3.2 * (k % 2), 1.35 - 3.2 * (k // 2), name, ha="center", fontsize=9)
left.set(title="Six gestures (dark: start, light: end)", aspect="equal", ylim=(-8, 2), xticks=[], yticks=[])
left.spines[:].set_visible(False)
places = range(len(kinds))
for one in zip(*errors.values(), strict=True):
    middle.plot(places, one, color="#CCCCCC", lw=1, zorder=1)
colours = ("#777777", "#D55E00", "#56B4E9", "#0072B2", "black")
for place, found, colour, marker in zip(places, errors.values(), colours, "vs^oD", strict=True):
    middle.plot(len(seeds) * [place], found, marker, color=colour, ms=8, alpha=0.8)
middle.set_xticks(places, kinds, fontsize=9)
middle.set(xlim=(-0.4, 4.4), ylim=(0, None), ylabel="wrong labels of new gestures in %")
middle.spines[["top", "right"]].set_visible(False)
middle.set_title("The summary of states is best")
right.imshow(counts, cmap="Blues", vmin=0)
for row, column in np.ndindex(counts.shape):
    if counts[row, column]:
        colour = "white" if counts[row, column] > counts.max() / 2 else "black"
        right.text(column, row, counts[row, column], ha="center", va="center", color=colour)
right.set_xticks(range(6), NAMES, rotation=35, ha="right")
right.set_yticks(range(6), NAMES)
right.set(title="Confusions with the mean of states", xlabel="answer", ylabel="gesture")

plt.show()

# %%
# The mean position of the pen hardly says more than chance. The mean of the states knows the order of the points, and
# confuses mainly the directions of the bow. The last state has forgotten most of the gesture, and means over parts of
# time depend on where in the figure a gesture starts. The summary makes almost no errors: besides the mean it has the
# deviation and the extremes of every unit, and how long its states were above each of several thresholds.
#
# Limits
# ------
#
# The reservoirs have default settings, and their means would be better with settings that were searched for. Only
# readouts are learned here. The gestures are simulated.
