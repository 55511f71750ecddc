"""
Looking ahead
=============

What is gained if a network may read a sequence from both ends? The label of a step is the sign of the mean input over
five steps before *and* five steps after it. A network that only receives the past has to guess the second half.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
X = [rng.standard_normal((150, 1)) for _ in range(60)]
window = np.ones(11) / 11
y = [np.convolve(x[:, 0], window, mode="same") > 0 for x in X]

# %%
# With `bidirectional=True` half of the 100 units read every sequence from its end. The task is linear, and random
# weights suffice for it: `learn="none"`.
networks = {
    "past only": ESNClassifier(100, learn="none").fit(X[:40], y[:40]),
    "both directions": ESNClassifier(100, learn="none", bidirectional=True).fit(X[:40], y[:40]),
}
errors = {name: 1 - esn.score(X[40:], y[40:]) for name, esn in networks.items()}
for name, error in errors.items():
    print(f"{name}: {error:.1%} of the labels of new sequences are wrong")

# %%
# The probability of the label "positive" along one new sequence. Grey: the steps that have this label.
figure, axes = plt.subplots(figsize=(10, 4), layout="constrained")
axes.fill_between(range(150), y[40], step="mid", color="#DDDDDD", lw=0, label="label: positive")
for (name, esn), colour, style in zip(networks.items(), ("#D55E00", "#0072B2"), ("--", "-"), strict=True):
    P = esn.predict_proba(X[40])[:, 1]
    axes.plot(P, color=colour, ls=style, lw=1.6, label=f"{name}: {errors[name]:.0%} wrong")
axes.axhline(0.5, color="#777777", lw=0.8, ls=":")
axes.set(xlabel="step", ylabel="probability of “positive”", xlim=(0, 149), ylim=(0, 1.02))
axes.set_title("Reading both ways removes two thirds of the errors", pad=26)
axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))

plt.show()

# %%
# The network that reads one way follows every change about five steps late: by then it has received what it needs. The
# other is right at the change itself.
#
# Limits
# ------
#
# A bidirectional network needs the whole sequence, and cannot run on a stream. There, shift the labels instead and
# accept a delay.
