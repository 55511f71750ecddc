"""Compiled loops of exponential smoothing, step by step over one series and its members."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from echolearn.validation import Array

LARGEST_LOG = 700.0  # exp of more is infinite


@njit(cache=True)
def advance(y: Array, time: int, logs: Array, P: Array, L: Array, S1: Array, S2: Array, F: Array) -> None:
    """Take every member through the values y; write F[t, k, h - 1], its forecast of step t + h after step t.

    P (K, 8): alpha, beta, gamma of the first and of the second season, damping phi, the autoregression rho, the largest
    error that trend, seasons and the autoregression learn from (one odd value moves the level alone), and the trend at
    the start.
    L (K, 3): level, trend and last residual; S1 (K, m1), S2 (K, m2): seasonal effects; these three are changed in
    place. time: the number of steps before y. A missing value (NaN) moves a member along its own forecast.
    """
    K, m1, m2, H = len(P), S1.shape[1], S2.shape[1], F.shape[2]
    for t in range(len(y)):
        for k in range(K):
            v = y[t]
            if logs[k]:
                v = math.log(v) if v > 0 else np.nan
            i1, i2, phi, rho = (time + t) % m1, (time + t) % m2, P[k, 4], P[k, 5]
            level, trend = L[k, 0] + phi * L[k, 1], phi * L[k, 1]
            if math.isnan(v):
                L[k, 0], L[k, 1], L[k, 2] = level, trend, rho * L[k, 2]
            else:
                e, most = v - level - S1[k, i1] - S2[k, i2], P[k, 6]
                u = e - rho * L[k, 2]
                c = min(max(u, -most), most)
                L[k, 0], L[k, 1], L[k, 2] = level + P[k, 0] * u, trend + P[k, 1] * c, min(max(e, -most), most)
                S1[k, i1] += P[k, 2] * c
                S2[k, i2] += P[k, 3] * c
            growth, power, rest = 0.0, 1.0, L[k, 2]
            for h in range(1, H + 1):
                power *= phi
                growth += power
                rest *= rho
                s = time + t + h
                f = L[k, 0] + growth * L[k, 1] + S1[k, s % m1] + S2[k, s % m2] + rest
                F[t, k, h - 1] = math.exp(min(f, LARGEST_LOG)) if logs[k] else f


@njit(cache=True)
def mean_squared_error(
    y: Array, p: Array, level: float, trend: float, s1: Array, s2: Array, horizon: int, skip: int, stride: int
) -> float:
    """Return the mean squared error of one member's forecasts 1 ... horizon steps ahead, from every stride-th step."""
    n, m1, m2, r, total, count = len(y), len(s1), len(s2), 0.0, 0.0, 0
    s1, s2 = s1.copy(), s2.copy()
    phi, rho, most = p[4], p[5], p[6]
    for t in range(n):
        level += phi * trend
        trend *= phi
        if math.isnan(y[t]):
            r *= rho
        else:
            e = y[t] - level - s1[t % m1] - s2[t % m2]
            u = e - rho * r
            c = min(max(u, -most), most)
            level += p[0] * u
            trend += p[1] * c
            s1[t % m1] += p[2] * c
            s2[t % m2] += p[3] * c
            r = min(max(e, -most), most)
        if t < skip or (n - 1 - t) % stride:
            continue
        growth, power, rest = 0.0, 1.0, r
        for h in range(1, min(horizon, n - 1 - t) + 1):
            power *= phi
            growth += power
            rest *= rho
            v = y[t + h]
            if not math.isnan(v):
                d = v - (level + growth * trend + s1[(t + h) % m1] + s2[(t + h) % m2] + rest)
                total += d * d
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
