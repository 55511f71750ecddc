"""
What size buys, and what learning buys
======================================

The task needs the product of the inputs of one and of three steps ago. Fixed networks find it by chance: the more
units, the better. Learned ones make the units that they need.

    python examples/plot_what_size_buys.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

rng = np.random.default_rng(0)
X = [rng.standard_normal((100, 2)) for _ in range(120)]
y = [np.roll(x[:, 0], 1) * np.roll(x[:, 0], 3) > 0 for x in X]
sizes, errors = (25, 50, 100, 200, 400), {"none": [], "both": []}
for size in sizes:
    for learn, found in errors.items():
        esn = ESNClassifier(size, learn=learn).fit(X[:80], y[:80])
        found.append(100 * (1 - esn.score(X[80:], y[80:])))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for learn, label, colour in (("none", "fixed", "#d9762b"), ("both", "learned", "#2a6fb0")):
    axes.plot(sizes, errors[learn], "o-", color=colour, label=label)
    print(label, [f"{e:.1f} %" for e in errors[learn]])
axes.axhline(50, color="#999999", lw=1, ls="--")
axes.set(xscale="log", xlabel="hidden units", ylabel="steps wrong in % (dashed: guessing)", ylim=(0, 55))
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(frameon=False)

for axes in figure.axes:
    axes.spines[["top", "right"]].set_visible(False)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
