"""Intrinsic plasticity: gain and bias of every unit, moved until its activity has the distribution asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.reservoir.activations import activate
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.validation import open_sequences

Array = NDArray[Any]


def intrinsic_plasticity(
    reservoir: Reservoir, X: Any, *, spread: float = 0.2, rate: float = 1e-3, epochs: int = 10
) -> Reservoir:
    """A reservoir whose units f(gain z + bias) carry as much information as their range allows: gain and bias follow,
    frame by frame, the gradient of the Kullback-Leibler divergence from

    - tanh: a Gaussian of mean 0 and standard deviation `spread` (Schrauwen et al., Neurocomputing 71, 2008);
    - sigmoid: an exponential distribution of mean `spread` (Triesch, ICANN 2005).

    The gains go into W and W_rec, so that what comes back is a reservoir like any other, with the same pattern.
    Inputs must be heard in it: under weak ones the gains of W_rec grow until the units keep each other busy.
    """
    slope = {"tanh": _towards_gaussian, "sigmoid": _towards_exponential}.get(reservoir.activation)
    if slope is None or reservoir.W_fb is not None:
        raise ValueError(
            "intrinsic plasticity is known for tanh and sigmoid units without feedback; this reservoir has "
            f"activation={reservoir.activation!r}{' and feedback' if reservoir.W_fb is not None else ''}."
        )
    if not (spread > 0 and rate > 0 and epochs >= 0):
        raise ValueError(f"spread={spread!r}, rate={rate!r}, epochs={epochs!r}; expected positive numbers.")
    X = open_sequences(X, n_features=reservoir.n_in).X
    if reservoir.backward is None:
        gain, bias = _followed(reservoir, X, slope, spread, rate, epochs)
    else:
        gain, bias = np.ones(reservoir.N), np.zeros(reservoir.N)
        for units, heard in ((~reservoir.backward, X), (reservoir.backward, [x[::-1] for x in X])):
            gain[units], bias[units] = _followed(reservoir.part(units), heard, slope, spread, rate, epochs)
    if not np.isfinite(gain).all():
        raise FloatingPointError(f"intrinsic plasticity diverged; use a smaller rate than {rate:g}.")
    W_rec = reservoir.W_rec.data * np.repeat(gain, np.diff(reservoir.W_rec.indptr))
    return reservoir.with_weights(W=reservoir.W * gain, W_rec=W_rec, bias=bias)


def _followed(
    reservoir: Reservoir, X: Sequence[Array], slope: Any, spread: float, rate: float, epochs: int
) -> tuple[Array, Array]:
    """Gain and bias (N,) after so many passes over all frames."""
    gain = np.ones(reservoir.N)
    bias = np.zeros(reservoir.N) if reservoir.bias is None else reservoir.bias
    drives = [x @ reservoir.W for x in X]
    for _ in range(epochs):
        for drive in drives:
            h = reservoir.first_states(1, np.float64)[0]
            for u in drive:
                z = u + reservoir.W_rec @ h
                f = activate(reservoir.activation, gain * z + bias)
                d_bias = rate * slope(f, spread)
                gain, bias = gain + rate / gain + d_bias * z, bias + d_bias
                h = (1 - reservoir.leak) * h + reservoir.leak * f
    return gain, bias


def _towards_gaussian(f: Array, sigma: float) -> Array:
    return np.asarray(-f / sigma**2 * (2 * sigma**2 + 1 - f * f))


def _towards_exponential(f: Array, mean: float) -> Array:
    return np.asarray(1 - (2 + 1 / mean) * f + f * f / mean)
