"""
Looking ahead
=============

The label of a step is the sign of the input's mean over five steps before *and after* it. A network that only sees the
past must guess. With `bidirectional=True` half of its units read every sequence from its end.

    python examples/plot_looking_ahead.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
X = [rng.standard_normal((150, 1)) for _ in range(60)]
window = np.ones(11) / 11
y = [np.convolve(x[:, 0], window, mode="same") > 0 for x in X]
networks = {
    "past only": ESNClassifier(100).fit(X[:40], y[:40]),
    "both directions": ESNClassifier(100, bidirectional=True).fit(X[:40], y[:40]),
}
figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
axes.fill_between(range(150), y[40], step="mid", color="#dddddd", label="label")
for (name, esn), colour in zip(networks.items(), ("#d9762b", "#2a6fb0"), strict=True):
    print(f"{name}: {1 - esn.score(X[40:], y[40:]):.1%} of the steps are wrong")
    axes.plot(esn.predict_proba(X[40])[:, 1], color=colour, label=name)
axes.set(xlabel="step", ylabel="probability", xlim=(0, 149))
axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
