"""
Are the probabilities right?
============================

A network that says 80 % should be right four times out of five. The softmax readout is calibrated on data that were not
used to fit it; the reliability diagram compares what it says with what happens.

    python examples/plot_calibration.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
X = [rng.standard_normal((100, 2)) for _ in range(140)]
y = [(x[:, 0] + np.roll(x[:, 1], 3) + 1.2 * rng.standard_normal(len(x)) > 0).astype(int) for x in X]
esn = ESNClassifier(100).fit(X[:60], y[:60])
said = np.concatenate([p[:, 1] for p in esn.predict_proba(X[60:])])
truth = np.concatenate(y[60:])
bins = np.linspace(0, 1, 11)
place = np.clip(np.digitize(said, bins) - 1, 0, 9)
means = [(said[place == k].mean(), truth[place == k].mean()) for k in range(10)]

figure, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
axes.plot([0, 1], [0, 1], color="#999999", lw=1, ls="--")
axes.plot(*zip(*means, strict=True), "o-", color="#2a6fb0")
axes.set(xlabel="probability that the network gives", ylabel="share of the steps where it was so")
axes.set_aspect("equal")

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
