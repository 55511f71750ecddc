"""
A stream that continues to learn
================================

What happens to a fitted network when its data change, and can it adapt? A receiver gets symbols (−3, −1, 1, 3) through
a channel that spreads them over ten steps, distorts them and adds noise (that of Jaeger and Haas, Science 304, 2004).
It has to determine which symbol was sent two steps ago. Halfway through, the channel becomes weaker and gains an echo.
"""

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNClassifier
from echolearn.readout import LMS, RLS

plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False

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


# %%
# Fit to recorded signals
# -----------------------
#
# Thirty recordings of 300 steps, all from the channel before its change.
symbols = [sent(300) for _ in range(30)]
esn = ESNClassifier(80, readout="ridge", input_scaling=0.5, leak=1.0, learning={"learn_leak": False}, epochs=15)
esn.fit([channel(d) for d in symbols], [np.roll(d, 2) for d in symbols])

# %%
# Run as a stream, one frame at a time
# ------------------------------------
#
# Three streams of the same network. The first stays as fitted. The other two receive the true symbol after each answer
# and update the readout: by least mean squares (LMS), or by recursive least squares (RLS) that forgets old frames.
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
for t in range(len(X)):
    for name, stream in streams.items():
        answers[name][t] = stream.predict(X[t]) if name == "as fitted" else stream.learn(X[t], y[t])

for name, answer in answers.items():
    print(f"{name:>9}: {np.mean(answer[-1000:] != y[-1000:]):.1%} of the last 1000 symbols are wrong")

# %%
# Before and after the change
# ---------------------------
figure = plt.figure(figsize=(10, 8.4), layout="constrained")
grid = figure.add_gridspec(3, 2, height_ratios=(1, 1.5, 1))
middle, low = figure.add_subplot(grid[1, :]), figure.add_subplot(grid[2, :])
for k, (name, part) in enumerate({"before": slice(0, half), "after": slice(half, None)}.items()):
    top = figure.add_subplot(grid[0, k])
    for symbol, colour in zip((-3, -1, 1, 3), ("#440154", "#31688E", "#35B779", "#C9A800"), strict=True):
        top.hist(X[part][d[part] == symbol], bins=np.linspace(-1.2, 1.8, 90), color=colour, alpha=0.6, label=symbol)
    top.set(xlabel="received value", yticks=(), ylabel="" if k else "frequency")
    top.set_title(f"Received values of each symbol, {name} the change", fontsize=11)
top.legend(title="symbol sent", frameon=False, fontsize=9, loc="upper right")

lines = {"as fitted": ("#555555", ":"), "LMS": ("#D55E00", "--"), "RLS": ("#0072B2", "-")}
for name, answer in answers.items():
    wrong = 100 * np.convolve(answer != y, np.ones(200) / 200, mode="valid")
    colour, style = lines[name]
    middle.semilogy(np.arange(len(wrong)) + 200, np.maximum(wrong, 0.1), color=colour, ls=style, lw=1.8, label=name)
middle.set(ylabel="wrong symbols of the last 200 in %", xlim=(0, len(X)), ylim=(0.2, 100), xlabel="frame")
middle.legend(frameon=False, loc="upper left")
middle.set_title("After the change, streams that continue to learn recover", fontsize=11)
middle.axvline(half, color="#777777", lw=1, ls="--")

frames = np.arange(len(X))[-60:]
low.step(frames, y[-60:], where="mid", color="#BBBBBB", lw=5, label="sent")
low.step(frames, answers["RLS"][-60:], where="mid", color="#0072B2", lw=1.5, label="RLS")
low.plot(frames, answers["as fitted"][-60:], "x", ms=5, color="#555555", label="as fitted")
low.set(yticks=(-3, -1, 1, 3), xlabel="frame", ylabel="symbol", xlim=(frames[0], frames[-1]))
low.set_title("The last 60 symbols", fontsize=11)
low.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.35))

plt.show()

# %%
# As fitted, the network confuses neighbouring symbols as soon as the channel is weaker. Both learning streams recover.
# RLS takes a few hundred frames and then makes almost no errors; LMS costs less per frame and keeps a small error.
#
# Limits
# ------
#
# Learning on a stream needs the true symbol soon after each answer, as in a training phase of a receiver. `forgetting`
# and the rate of LMS are a compromise: a readout that adapts quickly also follows noise. They were set by hand here.
