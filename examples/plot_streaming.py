"""
A stream that continues to learn
================================

A receiver gets symbols (-3, -1, 1, 3) through a channel that spreads them over ten steps, distorts them and adds noise
(that of Jaeger and Haas, Science 304, 2004), and has to determine which symbol was sent two steps ago. A network is
fitted to recorded signals and then runs as a stream, one frame at a time. Halfway through, the channel becomes weaker
and gains an echo. From then on a stream that stays as fitted fails; those whose readouts continue to learn (LMS, RLS)
recover within a few hundred frames.

    python examples/plot_streaming.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.readout.online import LMS, RLS

SPREAD = {2: 0.08, 1: -0.12, 0: 1.0, -1: 0.18, -2: -0.1, -3: 0.09, -4: -0.05, -5: 0.04, -6: 0.03, -7: 0.01}
rng = np.random.default_rng(0)


def channel(symbols, echo=0.0, gain=1.0):
    """Return what is received: the symbols spread over time, with one more echo, distorted, scaled, and with noise."""
    q = sum(weight * np.roll(symbols, -shift) for shift, weight in SPREAD.items()) + echo * np.roll(symbols, 3)
    u = gain * (q + 0.036 * q**2 - 0.011 * q**3) + 0.05 * rng.standard_normal(len(q))
    return u[:, None] / 3


def sent(steps):
    """Return random symbols."""
    return rng.choice([-3, -1, 1, 3], steps)


symbols = [sent(300) for _ in range(30)]
esn = ESNClassifier(80, readout="ridge", input_scaling=0.5, leak=1.0, learn_leak=False, epochs=15)
esn.fit([channel(d) for d in symbols], [np.roll(d, 2) for d in symbols])

half = 3000
d = sent(2 * half)
X = np.concatenate([channel(d[:half]), channel(d[half:], echo=0.1, gain=0.65)])
y = np.roll(d, 2)

streams = {
    "as fitted": esn.stream(),
    "LMS": esn.stream(online=LMS(0.3)),
    "RLS": esn.stream(online=RLS(forgetting=0.997)),
}
answers = {name: np.empty(len(X), int) for name in streams}
for t in range(len(X)):  # one frame at a time, as it comes in
    for name, stream in streams.items():
        answers[name][t] = stream.predict(X[t]) if name == "as fitted" else stream.learn(X[t], y[t])

figure = plt.figure(figsize=(9, 8), layout="constrained")
grid = figure.add_gridspec(3, 2, height_ratios=(1, 1.5, 1))
middle, low = figure.add_subplot(grid[1, :]), figure.add_subplot(grid[2, :])
colours = {"as fitted": "#8a8a8a", "LMS": "#d9762b", "RLS": "#2a6fb0"}
for k, (name, part) in enumerate({"before": slice(0, half), "after": slice(half, None)}.items()):
    top = figure.add_subplot(grid[0, k])
    for symbol, colour in zip((-3, -1, 1, 3), ("#440154", "#31688e", "#35b779", "#d9b400"), strict=True):
        top.hist(X[part][d[part] == symbol], bins=np.linspace(-1.2, 1.8, 90), color=colour, alpha=0.6)
    top.set(xlabel="received", yticks=())
    top.set_title(f"received values of the four symbols, {name} the change", fontsize=10)
    top.spines[["top", "right", "left"]].set_visible(False)
for name, answer in answers.items():
    wrong = np.convolve(answer != y, np.ones(200) / 200, mode="valid")
    middle.semilogy(np.arange(len(wrong)) + 200, np.maximum(wrong, 1e-3), color=colours[name], lw=1.8, label=name)
middle.set(ylabel="symbols wrong, last 200 frames", xlim=(0, len(X)), ylim=(2e-3, 1), xlabel="frame")
middle.legend(frameon=False, loc="upper left")
middle.set_title("the channel changes halfway through", fontsize=10)
middle.axvline(half, color="#b03030", lw=1, ls="--")
last = slice(len(X) - 60, len(X))
frames = np.arange(len(X))[last]
low.step(frames, y[last], where="mid", color="#bbbbbb", lw=5, label="sent")
low.step(frames, answers["RLS"][last], where="mid", color=colours["RLS"], lw=1.5, label="RLS")
low.plot(frames, answers["as fitted"][last], "x", ms=5, color="#555555", label="as fitted")
low.set(yticks=(-3, -1, 1, 3), xlabel="frame", ylabel="symbol", xlim=(frames[0], frames[-1]))
low.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.3))
for axes in (middle, low):
    axes.spines[["top", "right"]].set_visible(False)

late = slice(len(X) - 1000, len(X))
for name, answer in answers.items():
    print(f"{name:>9}: {np.mean(answer[late] != y[late]):.1%} of the last 1000 symbols wrong")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=80)
else:
    plt.show()
