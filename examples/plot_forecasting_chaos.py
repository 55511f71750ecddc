"""
Forecasting chaos
=================

Two networks of 100 units are fitted to 3000 steps of the Lorenz system and then run in closed loop: every output is
their next input. The network with random weights follows the system for a short time. The one that learned its input
and recurrent weights, for the one-step error only, follows it several times as long. In the end chaos prevails: an
error grows e-fold in each Lyapunov time. The path of the learned network is then still that of the Lorenz attractor.

    python examples/plot_forecasting_chaos.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNForecaster
from echolearn.datasets import lorenz

known, horizon = 3000, 700
series = lorenz(known + horizon)
past, future = series[:known], series[known:]
time = np.arange(1, horizon + 1) * 0.02 * 0.906  # in Lyapunov times

networks = {
    "random": ESNForecaster(100, learn="none").fit(past),
    "learned": ESNForecaster(100, epochs=150, verbose=1).fit(past),
}
paths = {name: esn.predict(horizon) for name, esn in networks.items()}
colours = {"random": "#d9762b", "learned": "#2a6fb0"}

figure = plt.figure(figsize=(11, 6), layout="constrained")
axes = figure.subplot_mosaic([["x", "butterfly"], ["z", "butterfly"], ["error", "butterfly"]], width_ratios=(1.5, 1))
for letter, column in (("x", 0), ("z", 2)):
    axes[letter].plot(time, future[:, column], color="#bbbbbb", lw=4, label="truth")
    for name, path in paths.items():
        axes[letter].plot(time, path[:, column], color=colours[name], lw=1.3, label=name)
    shown = future[:, column].min() - 3, future[:, column].max() + 3
    axes[letter].set(ylabel=letter, xlim=(0, time[-1]), ylim=shown)
axes["x"].legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))

for name, path in paths.items():
    error = np.sqrt((((path - future) / past.std(axis=0)) ** 2).mean(axis=1))
    valid = time[np.argmax(error > 0.4)] if (error > 0.4).any() else time[-1]
    axes["error"].semilogy(time, error, color=colours[name], lw=1.3)
    axes["error"].axvline(valid, color=colours[name], lw=1, ls=":")
    print(f"{name:>9}: follows the system for {valid:.1f} Lyapunov times")
axes["error"].axhline(0.4, color="#b03030", lw=1, ls="--")
axes["error"].set(ylabel="normalised error", xlabel="Lyapunov times", xlim=(0, time[-1]))

free = networks["learned"].predict(4000)
axes["butterfly"].plot(past[:, 0], past[:, 2], color="#cccccc", lw=0.6, label="training series")
axes["butterfly"].plot(free[1000:, 0], free[1000:, 2], color=colours["learned"], lw=0.5, label="closed loop")
axes["butterfly"].set(xlabel="x", ylabel="z", title="The learned network after 1000 steps")
axes["butterfly"].legend(frameon=False, loc="lower left")
for a in axes.values():
    a.spines[["top", "right"]].set_visible(False)

if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
