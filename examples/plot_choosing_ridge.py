"""
Choosing ridge
==============

A readout of 200 states that is fitted to 500 noisy steps can fit the noise as well. The ridge penalty prevents this: if
it is too small, the training error is misleading; if it is too large, nothing is learned. One eigendecomposition gives
the readouts of all penalties, scored on held-out sequences or, without any, by generalised cross-validation;
`ridge="auto"` (the default) does one or the other.

    python examples/plot_choosing_ridge.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from echolearn import ESNRegressor, Reservoir
from echolearn.readout.observation import stack
from echolearn.readout.ridge import choose_ridge, solve, squared_error
from echolearn.readout.statistics import statistics_of
from echolearn.states import harvest

rng = np.random.default_rng(0)


def task(sequences, steps=100, noise=0.5):
    """Return sequences and, as targets, the product of the inputs two and three steps ago, with noise added."""
    X = [rng.uniform(-1, 1, (steps, 1)) for _ in range(sequences)]
    return X, [3 * np.roll(x, 2) * np.roll(x, 3) + noise * rng.standard_normal(x.shape) for x in X]


reservoir = Reservoir.random(1, 200, spectral_radius=0.8, input_scaling=1.0, bias_scaling=0.3, random_state=0)


def statistics(X, Y):
    """Return all that the readout needs to know of the data: G = H_c'H_c and Q = H_c'T."""
    H_c = [stack(h, x, direct=True, intercept=True) for h, x in zip(harvest(reservoir, X), X, strict=True)]
    return statistics_of(np.concatenate(H_c).astype(float), np.concatenate(Y), 1)


(X, Y), new = task(5), task(50)
train, test = statistics(X, Y), statistics(*new)
path = 10.0 ** np.arange(-6, 4, 0.25)
by_test, held_out = choose_ridge(train, path, intercept=True, held_out=test)
by_gcv, gcv = choose_ridge(train, path, intercept=True)
U = [solve(train, mu, intercept=True) for mu in path]
fitted = [squared_error(train, u) / train.n for u in U]
auto = ESNRegressor(200, learn="none", spectral_radius=0.8, input_scaling=1.0, bias_scaling=0.3).fit(X, Y)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2), layout="constrained")
left.loglog(path, fitted, color="tab:blue", label="the 500 training steps")
left.loglog(path, held_out, color="tab:orange", label="5,000 new steps")
left.loglog(path, gcv, "--", color="tab:green", label="generalised cross-validation, from training alone")
left.axhline(0.25, color="0.6", lw=1, ls=":", label="noise in the targets: the lower limit")
for mu, scores, colour in ((by_test, held_out, "tab:orange"), (by_gcv, gcv, "tab:green")):
    left.plot(mu, scores.min(), "o", ms=9, color=colour)
left.set(xlabel="ridge", ylabel="mean squared error", title="Three errors of the same readout")
left.set_yticks((0.2, 0.3, 0.5, 1), ("0.2", "0.3", "0.5", "1"))
left.yaxis.set_minor_locator(plt.NullLocator())
left.legend(fontsize=9)
right.loglog(path, [np.linalg.norm(u[:-1]) for u in U], color="tab:red")
right.axvline(by_gcv, color="tab:green", lw=1, ls="--")
right.set(xlabel="ridge", ylabel="size of the readout weights", title="The ridge penalty keeps weights small")
print(f"best on new steps: ridge {by_test:.3g}; by cross-validation from training alone: {by_gcv:.3g}")
print(f'ESNRegressor(ridge="auto") chose {auto.ridge_:.3g} for its own reservoir')
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
