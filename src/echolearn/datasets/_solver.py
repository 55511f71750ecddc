"""A solver of smooth equations that is exact up to rounding errors: polynomials through Gauss nodes in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from echolearn.validation import Array

Series = NDArray[np.float64]
Slope = Callable[[Array], Array]

DIVERGED_VALUE = 1e6  # none of the systems here returns from so far away
MAX_SOLVER_STEPS = 10**7  # of one series
MAX_SAMPLES_PER_STEP = 8
MAX_ITERATIONS = 60  # of one step; it converges in 10 to 30
NODES_PER_STEP = 16


def integrate(
    slope: Slope,
    start: Array,
    *,
    steps: int,
    dt: float,
    step: float,
    rates: Series | None = None,
    nodes: int = NODES_PER_STEP,
) -> Array:
    """Return the solution (steps, dims) of dx/dt = rates x + slope(x) at dt, 2 dt, ...; NaN from where it runs off.

    Over a step, slope(x) is the polynomial through its values at Gauss nodes, and x its exact response. Both are found
    by iteration (Picard's), which converges faster than geometrically. slope: of an array (dims, times). step: the
    longest, in which the polynomial is exact to rounding errors; where the iteration fails, shorter ones are tried.
    """
    rates = np.zeros(1) if rates is None else rates
    for longest in step / 2.0 ** np.arange(4):
        per_step = int(min(max(1.0, longest / dt + 1e-9), MAX_SAMPLES_PER_STEP))
        substeps = max(1.0, np.ceil(dt / longest - 1e-9))
        if substeps * steps > MAX_SOLVER_STEPS:
            raise ValueError(f"dt={dt!r} and {steps} steps take more than {MAX_SOLVER_STEPS:,} steps of the solver.")
        response = Response.of(rates, dt * per_step / substeps, per_step, nodes)
        series = _respond(slope, start, response, steps * int(substeps))
        if np.isfinite(series).all():
            break
    return series[:, int(substeps) - 1 :: int(substeps)].T


class Response(NamedTuple):
    """The response x(t) = decay x(0) + weights slope over a step, at its nodes and at its samples.

    decay (dims, times), weights (dims, nodes, times); dims is 1 where all dimensions have one rate.
    """

    node_decay: Series
    node_weights: Series
    sample_decay: Series
    sample_weights: Series

    @classmethod
    def of(cls, rates: Series, step: float, samples: int, nodes: int) -> Response:
        """Return the response of a step with so many samples, the last of them at its end."""
        at = (leggauss(nodes)[0] + 1) / 2
        found = []
        for times in (at, np.arange(1, samples + 1) / samples):
            found += [np.exp(np.multiply.outer(rates * step, times)), response_weights(rates * step, times, at) * step]
        return cls(*found)


def response_weights(rates: Series, times: Series, nodes: Series) -> Series:
    """Return the integrals (dims, nodes, times) over s from 0 to t of exp(rate (t - s)) times each Lagrange polynomial.

    They are Gauss sums over intervals that halve towards s = t, where the exponential of a stiff dimension is.
    """
    x, w = leggauss(NODES_PER_STEP)
    ends = np.append(0.0, 2.0 ** np.arange(-30, 1))
    width = np.diff(ends)[:, None]
    back, w = (ends[:-1, None] + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()
    sums = [t * (np.exp(np.multiply.outer(rates * t, back)) * w) @ lagrange(t - t * back, nodes) for t in times]
    return np.stack(sums, axis=-1)


def lagrange(times: Series, nodes: Series) -> Series:
    """Return the polynomials (times, nodes) that are 1 at one node and 0 at the others; all of them in [0, 1]."""
    degree = len(nodes) - 1
    return np.asarray(np.linalg.solve(legvander(2 * nodes - 1, degree).T, legvander(2 * times - 1, degree).T).T)


def _respond(slope: Slope, x: Array, response: Response, count: int) -> Array:
    """Return so many samples (dims, count), step after step; NaN from the step on whose iteration fails."""
    node_decay, node_weights, decay, weights = response
    per_step = decay.shape[1]
    series = np.full((len(x), -(-count // per_step) * per_step), np.nan, x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(0, count, per_step):
            begin = x[:, None] * node_decay
            X, change = begin, np.inf
            for _ in range(MAX_ITERATIONS):
                previous, X = X, begin + (slope(X)[:, None] @ node_weights)[:, 0]
                last, change = change, float(np.abs(X - previous).max())
                if not change > 4e-16 * np.abs(X).max() or (change >= last and change < 1e-13 * np.abs(X).max()):
                    break
            else:
                break
            out = x[:, None] * decay + (slope(X)[:, None] @ weights)[:, 0]
            if not np.abs(out).max() < DIVERGED_VALUE:
                break
            series[:, t : t + per_step] = out
            x = out[:, -1]
    return series[:, :count]
