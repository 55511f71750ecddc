"""Compiled loops of exponential smoothing, step by step over one series and its members.

A member has parameters p (8,): alpha, beta, gamma of the first and of the second season, damping phi, the
autoregression rho, the largest error that trend, seasons and the autoregression learn from (one odd value moves the
level alone), and the trend at the start. Its state is x (3,): level, trend and last residual, and seasonal effects s1
and s2, by the time modulo their lengths.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from echolearn.validation import Array

LARGEST_LOG = 700.0  # exp of more is infinite


@njit(cache=True)
def _move(v: float, time: int, p: Array, x: Array, s1: Array, s2: Array) -> None:
    """Take a member past the value v at a time, in place; a missing one (NaN) moves it along its own forecast."""
    i1, i2, phi, rho, most = time % len(s1), time % len(s2), p[4], p[5], p[6]
    x[0] += phi * x[1]
    x[1] *= phi
    if math.isnan(v):
        x[2] *= rho
        return
    e = v - x[0] - s1[i1] - s2[i2]
    u = e - rho * x[2]
    c = min(max(u, -most), most)
    x[0] += p[0] * u
    x[1] += p[1] * c
    x[2] = min(max(e, -most), most)
    s1[i1] += p[2] * c
    s2[i2] += p[3] * c


@njit(cache=True)
def _forecast(time: int, p: Array, x: Array, s1: Array, s2: Array, out: Array) -> None:
    """Write the forecasts of the steps that follow a time."""
    growth, power, rest = 0.0, 1.0, x[2]
    for h in range(1, len(out) + 1):
        power *= p[4]
        growth += power
        rest *= p[5]
        out[h - 1] = x[0] + growth * x[1] + s1[(time + h) % len(s1)] + s2[(time + h) % len(s2)] + rest


@njit(cache=True)
def advance(y: Array, time: int, logs: Array, P: Array, L: Array, S1: Array, S2: Array, F: Array) -> None:
    """Take every member through the values y; write F[t, k, h - 1], its forecast of step t + h after step t.

    P (K, 8), L (K, 3), S1 (K, m1), S2 (K, m2): parameters and states, which are changed in place. time: the number of
    steps before y.
    """
    for t in range(len(y)):
        for k in range(len(P)):
            v = y[t]
            if logs[k]:
                v = math.log(v) if v > 0 else np.nan
            _move(v, time + t, P[k], L[k], S1[k], S2[k])
            _forecast(time + t, P[k], L[k], S1[k], S2[k], F[t, k])
            if logs[k]:
                for h in range(F.shape[2]):
                    F[t, k, h] = math.exp(min(F[t, k, h], LARGEST_LOG))


@njit(cache=True)
def mean_squared_error(
    y: Array, p: Array, level: float, trend: float, s1: Array, s2: Array, horizon: int, skip: int, stride: int
) -> float:
    """Return the mean squared error of one member's forecasts 1 ... horizon steps ahead, from every stride-th step."""
    n, total, count = len(y), 0.0, 0
    x, s1, s2, f = np.array([level, trend, 0.0]), s1.copy(), s2.copy(), np.empty(horizon)
    for t in range(n):
        _move(y[t], t, p, x, s1, s2)
        if t < skip or (n - 1 - t) % stride:
            continue
        ahead = min(horizon, n - 1 - t)
        _forecast(t, p, x, s1, s2, f[:ahead])
        for h in range(ahead):
            if not math.isnan(y[t + 1 + h]):
                total += (y[t + 1 + h] - f[h]) ** 2
                count += 1
    return total / max(count, 1)


@njit(cache=True)
def advance_features(z: Array, expected: Array, time: int, past: Array, level: Array, rate: float, out: Array) -> None:
    """Write the inputs of a network for each value: innovation, change since a season ago, deviation from a slow level.

    z (n,): values, NaN for unknown ones, which stand as expected. past (m,): the last season, by the time modulo m, and
    level (1,); both are changed in place. At time 0 they take the first value.
    """
    m = len(past)
    for t in range(len(z)):
        v = expected[t] if math.isnan(z[t]) else z[t]
        if time + t == 0:
            level[0] = v
        if time + t < m:
            past[(time + t) % m] = v
        level[0] += rate * (v - level[0])
        out[t, 0], out[t, 1], out[t, 2] = v - expected[t], v - past[(time + t) % m], v - level[0]
        past[(time + t) % m] = v
