"""
When sensors fail
=================

How much does a forecast suffer if measurements are lost, and what should stand in their place? A network predicts a
chaotic series (Mackey-Glass) five steps ahead. A share of its inputs is missing (NaN), in training as well as in the
test.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor
from echolearn.datasets import mackey_glass

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

series = mackey_glass(3000)
rng = np.random.default_rng(0)
X, y = series[:-5], series[5:, 0]
train, test = slice(0, 2000), slice(2000, None)

# %%
# Two ways to fill a gap
# ----------------------
#
# `missing="mean"` puts the mean of the training data in place of a lost value. `missing="carry"` repeats the last known
# value and gives the network a second input that marks it as old.
shares, errors = np.linspace(0, 0.6, 7), {"mean": [], "carry": []}
for share in shares:
    damaged = X.copy()
    damaged[rng.random(len(X)) < share] = np.nan
    for way, found in errors.items():
        esn = ESNRegressor(200, learn="none", missing=way).fit(damaged[train], y[train])
        found.append(100 * (1 - esn.score(damaged[test], y[test])))
        if np.isclose(share, 0.3) and way == "carry":
            shown, forecast = damaged[test][300:450, 0], esn.predict(damaged[test]).ravel()[300:450]
for way, found in errors.items():
    print(f'missing="{way}":', ", ".join(f"{error:.2f} %" for error in found))

# %%
figure, (top, low) = plt.subplots(2, 1, figsize=(9, 7), layout="constrained", height_ratios=(1, 1.3))
steps = np.arange(150)
top.plot(steps, y[test][300:450], color="#BBBBBB", lw=4, label="the value five steps ahead")
top.plot(steps, forecast, color="#0072B2", lw=1.5, label='forecast, missing="carry"')
top.plot(steps, shown, "o", ms=3.5, color="black", label="measurements that remain")
top.set(xlabel="step", ylabel="value", xlim=(0, 149))
top.set_title("With 30 % of the measurements lost, the forecast still follows the series", pad=26)
top.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
for (way, found), colour, style in zip(errors.items(), ("#D55E00", "#0072B2"), ("s--", "o-"), strict=True):
    low.plot(100 * shares, found, style, color=colour, lw=2, label=f'missing="{way}"')
low.set(xlabel="lost measurements in %", ylabel="variance not explained in %", xlim=(-1, 61), ylim=(0, None))
low.set_title("Carrying the last value forward loses less than the mean", fontsize=11)
low.legend(frameon=False, loc="upper left")

plt.show()

# %%
# Without losses the forecast is almost exact. With losses, the variance that is not explained is a quarter to a half
# of that with the mean, if the last known value is carried forward and marked.
#
# Limits
# ------
#
# Values are lost independently of each other here. In long gaps a carried value is soon of little use, and with several
# sensors the others may help. Both networks have one seed.
