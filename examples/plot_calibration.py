"""
Are the probabilities right?
============================

If a network gives a label the probability 80 %, is that label right four times out of five? The labels here are noisy,
so that no network can be certain. The softmax readout is calibrated on data that were held out of its fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

rng = np.random.default_rng(0)
X = [rng.standard_normal((100, 2)) for _ in range(140)]
y = [(x[:, 0] + np.roll(x[:, 1], 3) + 1.2 * rng.standard_normal(len(x)) > 0).astype(int) for x in X]
esn = ESNClassifier(100).fit(X[:60], y[:60])

# %%
# Compare probabilities with frequencies
# --------------------------------------
#
# The 8,000 steps of new sequences are sorted into ten groups by the probability that the network gives to the label 1.
# In each group, the share of steps whose label is 1 should equal that probability.
given = np.concatenate([P[:, 1] for P in esn.predict_proba(X[60:])])
truth = np.concatenate(y[60:])
group = np.clip((10 * given).astype(int), 0, 9)
steps = np.bincount(group, minlength=10)
mean_given, share = (np.bincount(group, values, minlength=10) / steps for values in (given, truth))
chance = 1.96 * np.sqrt(mean_given * (1 - mean_given) / steps)
deviation = np.sum(steps * np.abs(share - mean_given)) / steps.sum()
print(f"mean deviation of frequency from probability: {100 * deviation:.1f} percentage points")

# %%
figure, (top, low) = plt.subplots(2, 1, figsize=(7, 7.5), layout="constrained", height_ratios=(3, 1), sharex=True)
top.plot([0, 1], [0, 1], color="#777777", lw=1, ls="--", label="perfect calibration")
top.fill_between(mean_given, mean_given - chance, mean_given + chance, color="#DDDDDD", label="95 % range of chance")
top.plot(mean_given, share, "o-", color="#0072B2", label="the network")
top.set(ylabel="share of steps with label 1", xlim=(0, 1), ylim=(0, 1))
top.set_title(f"Probabilities are right to {100 * deviation:.1f} percentage points")
top.legend(frameon=False, loc="upper left")
low.bar(np.arange(0.05, 1, 0.1), steps, width=0.09, color="#0072B2")
low.set(xlabel="probability of label 1 given by the network", ylabel="steps")

plt.show()

# %%
# The points lie near the diagonal, most of them within the range that chance explains. The histogram shows that the
# network uses the whole range of probabilities; a network that always answered 50 % would be calibrated too, but
# useless.
#
# Limits
# ------
#
# With two other seeds, the mean deviation was 2.4 and 1.2 percentage points (measured by hand). Calibration holds for
# data like those of the fit. If sensors or classes change, so do the frequencies.
