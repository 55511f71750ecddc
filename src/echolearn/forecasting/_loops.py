"""Compiled loops of exponential smoothing, step by step over one series and its members.

A member has parameters p (7,): alpha, beta, gamma of the first and of the second season, damping phi, the largest error
that is learned from (one odd value moves the level alone), and the trend at the start; and coefficients a of an
autoregression of what level and seasons leave. Its state is x (2,), level and trend; r, what was left of the last
values, the latest first; and seasonal effects s1 and s2, by the time modulo their lengths.
"""

from __future__ import annotations

import math

import numpy as np

from echolearn.execution.compilation import cached_njit
from echolearn.validation import Array

LARGEST_LOG = 700.0  # exp of more is infinite


@cached_njit()
def _move(v: float, time: int, p: Array, a: Array, x: Array, r: Array, s1: Array, s2: Array) -> None:
    """Take a member past the value v at a time, in place; a missing one (NaN) moves it along its own forecast."""
    i1, i2, phi, most = time % len(s1), time % len(s2), p[4], p[5]
    x[0] += phi * x[1]
    x[1] *= phi
    rest = 0.0
    for i in range(len(a)):
        rest += a[i] * r[i]
    u = 0.0 if math.isnan(v) else v - x[0] - s1[i1] - s2[i2] - rest
    c = min(max(u, -most), most)
    for i in range(len(a) - 1, 0, -1):
        r[i] = r[i - 1]
    if len(a):
        r[0] = rest + c
    x[0] += p[0] * u
    x[1] += p[1] * c
    s1[i1] += p[2] * c
    s2[i2] += p[3] * c


@cached_njit()
def _forecast(time: int, p: Array, a: Array, x: Array, r: Array, s1: Array, s2: Array, out: Array) -> None:
    """Write the forecasts of the steps that follow a time."""
    for h in range(len(out)):  # of the autoregression
        rest = 0.0
        for i in range(len(a)):
            rest += a[i] * (out[h - 1 - i] if i < h else r[i - h])
        out[h] = rest
    growth, power = 0.0, 1.0
    for h in range(1, len(out) + 1):
        power *= p[4]
        growth += power
        out[h - 1] += x[0] + growth * x[1] + s1[(time + h) % len(s1)] + s2[(time + h) % len(s2)]


@cached_njit()
def forecast(time: int, logs: Array, P: Array, A: Array, L: Array, R: Array, S1: Array, S2: Array, F: Array) -> None:
    """Write F[k, h - 1], the forecast of every member h steps after a time."""
    for k in range(len(P)):
        lags = A.shape[1]
        while lags and A[k, lags - 1] == 0:
            lags -= 1
        _forecast(time, P[k], A[k, :lags], L[k], R[k], S1[k], S2[k], F[k])
        if logs[k]:
            for h in range(F.shape[1]):
                F[k, h] = math.exp(min(F[k, h], LARGEST_LOG))


@cached_njit()
def advance(
    y: Array, time: int, logs: Array, P: Array, A: Array, L: Array, R: Array, S1: Array, S2: Array, F: Array
) -> None:
    """Take every member through the values y; write F[t, k, h - 1], its forecast of step t + h after step t.

    P (K, 7), A (K, lags), and L (K, 2), R (K, lags), S1 (K, m1), S2 (K, m2): parameters, and states, which are changed
    in place. time: the number of steps before y.
    """
    for t in range(len(y)):
        for k in range(len(P)):
            v = y[t]
            if logs[k]:
                v = math.log(v) if v > 0 else np.nan
            _move(v, time + t, P[k], A[k], L[k], R[k], S1[k], S2[k])
        forecast(time + t, logs, P, A, L, R, S1, S2, F[t])


@cached_njit()
def mean_squared_error(
    y: Array, p: Array, level: float, trend: float, s1: Array, s2: Array, horizon: int, skip: int, stride: int
) -> float:
    """Return the mean squared error 1 ... horizon steps ahead of a member without autoregression.

    Forecasts are made from every stride-th step.
    """
    n, total, count = len(y), 0.0, 0
    x, s1, s2, f, none = np.array([level, trend]), s1.copy(), s2.copy(), np.empty(horizon), np.empty(0)
    for t in range(n):
        _move(y[t], t, p, none, x, none, s1, s2)
        if t < skip or (n - 1 - t) % stride:
            continue
        ahead = min(horizon, n - 1 - t)
        _forecast(t, p, none, x, none, s1, s2, f[:ahead])
        for h in range(ahead):
            if not math.isnan(y[t + 1 + h]):
                total += (y[t + 1 + h] - f[h]) ** 2
                count += 1
    return total / max(count, 1)


@cached_njit()
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
