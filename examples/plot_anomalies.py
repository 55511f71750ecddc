"""
A stream under watch
====================

Three sensors of a machine follow each other with its cycle. A network is fitted to a good hour, and then runs beside
the machine: it forecasts the next frame, and a monitor compares what comes with what was expected, and each error with
the errors before. Four things go wrong: a sensor jumps for one frame, values are missing, a sensor gets stuck, and in
the end the machine is worn and begins to shake, which no single frame shows. Of the frames in which nothing is wrong,
one in ten thousand may raise an alarm.

    python examples/plot_anomalies.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNForecaster
from echolearn.diagnostics import Monitor

rng = np.random.default_rng(0)
steps, fitted_to = 6000, 1500
JUMP, GAP, STUCK, WEAR = 3000, slice(3400, 3420), slice(3800, 3860), 4800

t = np.arange(steps)
angle = 2 * np.pi * t / 60
load = 0.3 * np.convolve(rng.standard_normal(steps), np.ones(100) / 10, "same")
clean = np.stack([np.sin(angle) + load, np.tanh(2 * np.cos(angle)), 0.5 * np.sin(2 * angle + 1) - load], axis=1)
shaking = np.where(t < WEAR, 1.0, 2.0)[:, None]
frames = clean * [20, 0.3, 5] + [60, 1, 100] + shaking * rng.standard_normal(clean.shape) * [1.0, 0.015, 0.25]
names = ["temperature", "pressure", "current"]

frames[JUMP, 1] += 0.15
frames[GAP] = np.nan
frames[STUCK, 0] = frames[STUCK.start, 0]

esn = ESNForecaster(150, learn="none", method="closed_loop").fit(frames[:fitted_to])
monitor = Monitor(esn)
seen = monitor.run(frames[fitted_to:])  # or monitor.update(frame), one at a time
faults = {
    "jump": JUMP - fitted_to,
    "gap": GAP.start - fitted_to,
    "stuck": STUCK.start - fitted_to,
    "worn": WEAR - fitted_to,
}

print(seen)
for name, where in faults.items():
    for kind, flags in (("an anomaly", seen.anomalous), ("a drift", seen.drift)):
        for step in [s for s in seen.step[flags] if where <= s < where + 400][:1]:
            print(f"{name:>6} at {where}: {kind} at {step}, in the {names[seen.output[step]]}")

figure, (top, low) = plt.subplots(2, 1, figsize=(9, 6.5), layout="constrained", sharex=True, height_ratios=(2, 1))
for k, (name, colour) in enumerate(zip(names, ("#2a6fb0", "#3a9a5b", "#7a5ba6"), strict=True)):
    usual = frames[:fitted_to, k]
    scaled = (frames[fitted_to:, k] - usual.mean()) / usual.std() + 6 * k
    alarms = seen.anomalous & (seen.output == k)
    top.plot(seen.step, scaled, color=colour, lw=0.5)
    top.plot(seen.step[alarms], scaled[alarms], "o", ms=6, color="#b03030", mew=0)
    top.text(0, 6 * k + 2.3, name, color=colour, fontsize=9)
top.set(yticks=(), ylim=(-3.5, 17.5), xlim=(0, len(seen)))
top.spines[["top", "right", "left"]].set_visible(False)
top.set_title("what three sensors say, and the frames that raise an alarm (red)", fontsize=10)
for what, where in faults.items():
    top.axvline(where, color="#b03030", lw=0.8, ls=":")
    top.text(where, 16.5, f" {what}", fontsize=9, color="#b03030")
seen.plot(low)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
