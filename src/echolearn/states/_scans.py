"""The compiled loops of deep layers: normalisation, the scan over time with what follows it, and their transposes.

Frames are rows, sequences follow one another: sequence s has the rows ``bounds[s] : bounds[s + 1]``. Units come in
pairs, pair c being the columns c and m + c; the first `f` pairs run forward in time, the others backward. Loops over
columns are contiguous, so that the compiler uses vectors. Dropout needs no memory: whether an entry is left out is a
hash of its place and of a seed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from echolearn.execution.compilation import cached_njit
from echolearn.states._activations import COMPILER_OPTIONS, INNER_OPTIONS
from echolearn.validation import Array


@njit(inline="always", **INNER_OPTIONS, **COMPILER_OPTIONS)
def _hash(x: np.uint32) -> np.uint32:
    """Return 32 bits that look random, from 32 bits that count (the finaliser of MurmurHash3)."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x85EBCA6B))
    x = np.uint32(x ^ (x >> np.uint32(13)))
    x = np.uint32(x * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ (x >> np.uint32(16)))


@cached_njit(**COMPILER_OPTIONS)
def add_and_normalize(
    x: Array, o: Array, b: Array, drop: int, seed: int, scale: float, eps: float, z: Array, r: Array
) -> None:
    """Add to x (K, C) what a layer adds, o + b with dropout; fill z = x / rms(x) and r (K,) = 1 / rms(x).

    drop: of 2^32 the share that is left out, 0 for none; scale: the factor of what stays.
    """
    K, C = x.shape
    share, count = np.uint32(drop), scale - scale + C
    for t in range(K):
        row, new = x[t], o[t]
        total = scale - scale
        if drop > 0:
            place = np.uint32(seed + t * C)
            for c in range(C):
                v = (new[c] + b[c]) * scale
                row[c] += v if _hash(np.uint32(place + np.uint32(c))) >= share else scale - scale
        else:
            for c in range(C):
                row[c] += new[c] + b[c]
        for c in range(C):
            total += row[c] * row[c]
        q = eps / eps / math.sqrt(total / count + eps)
        r[t] = q
        for c in range(C):
            z[t, c] = row[c] * q


@cached_njit(**COMPILER_OPTIONS)
def normalize_back(z: Array, r: Array, dz: Array, dx: Array) -> None:
    """Add to dx (K, C) the derivative through z = x / rms(x): r (dz - z mean(dz z))."""
    K, C = z.shape
    for t in range(K):
        s = r[t] - r[t]
        for c in range(C):
            s += dz[t, c] * z[t, c]
        s /= C
        q = r[t]
        for c in range(C):
            dx[t, c] += q * (dz[t, c] - z[t, c] * s)


@cached_njit(**COMPILER_OPTIONS)
def drop_back(dx: Array, drop: int, seed: int, scale: float, do: Array, db: Array) -> None:
    """Fill do (K, C) with dx after the dropout of `add_and_normalize`, and add its sum over the frames to db (C,)."""
    K, C = dx.shape
    share = np.uint32(drop)
    for t in range(K):
        place = np.uint32(seed + t * C)
        for c in range(C):
            do[t, c] = dx[t, c] * scale if _hash(np.uint32(place + np.uint32(c))) >= share else scale - scale
        for c in range(C):
            db[c] += do[t, c]


# In the loops of the two scans, each inner loop writes one array, and the two units of a pair are arrays of their own:
# what overlaps is checked at run time for a few arrays only, and other loops would not be vectorised.


@cached_njit(**COMPILER_OPTIONS)
def scan(re: Array, im: Array, gain: Array, bounds: Array, h0: Array, f: int, h: Array) -> None:
    """Replace u (K, H) in h by the states h_t = a R(theta) h_{t-1} + (1 - a) u_t.

    re, im, gain (m,): a cos(theta), a sin(theta), 1 - a; h0 (B, H): the states before each sequence.
    """
    m = re.shape[0]
    for s in range(bounds.shape[0] - 1):
        first, last = bounds[s], bounds[s + 1] - 1
        for t in range(first, last + 1):
            _step(re, im, gain, 0, f, h[t - 1] if t > first else h0[s], h[t])
        for t in range(last, first - 1, -1) if f < m else range(0):
            _step(re, im, gain, f, m, h[t + 1] if t < last else h0[s], h[t])


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _step(re: Array, im: Array, gain: Array, begin: int, end: int, before: Array, now: Array) -> None:
    """Take one step of `scan` with the pairs from begin to end."""
    m = re.shape[0]
    x, y, u, v = before[:m], before[m:], now[:m], now[m:]
    for c in range(begin, end):
        u[c] = re[c] * x[c] - im[c] * y[c] + gain[c] * u[c]
    for c in range(begin, end):
        v[c] = im[c] * x[c] + re[c] * y[c] + gain[c] * v[c]


@cached_njit(**COMPILER_OPTIONS)
def rectify(h: Array, b: Array, drop: int, seed: int, scale: float, p: Array) -> None:
    """Fill p = relu(h + b) (K, H), with dropout."""
    K, H = h.shape
    share, zero = np.uint32(drop), scale - scale
    for t in range(K):
        now, out = h[t], p[t]
        if drop > 0:
            place = np.uint32(seed + t * H)
            for c in range(H):
                v = now[c] + b[c]
                kept = (v > zero) & (_hash(np.uint32(place + np.uint32(c))) >= share)
                out[c] = v * scale if kept else zero
        else:
            for c in range(H):
                v = now[c] + b[c]
                out[c] = v if v > zero else zero


@cached_njit(**COMPILER_OPTIONS)
def rectify_back(p: Array, scale: float, d: Array, db: Array) -> None:
    """Turn dE/dp in d (K, H) into dE/dh, and add its sum over the frames to db (H,)."""
    K, H = p.shape
    zero = scale - scale
    for t in range(K):
        for c in range(H):
            d[t, c] = d[t, c] * scale if p[t, c] > zero else zero
        for c in range(H):
            db[c] += d[t, c]


@cached_njit(**COMPILER_OPTIONS)
def scan_back(
    re: Array, im: Array, gain: Array, bounds: Array, h0: Array, f: int, h: Array, d: Array, D: Array, carry: Array
) -> None:
    """Turn dE/dh of each step in d (K, H) into dE/du: the same scan in the other direction (see gradients.deep).

    Adds to D (3, m) the sums over all steps of <delta, h>, <delta, h_before> and <delta, J h_before>, where J turns by
    a right angle: those with respect to a and theta are combinations of them. carry (H,): work space.
    """
    m = re.shape[0]
    for s in range(bounds.shape[0] - 1):
        first, last = bounds[s], bounds[s + 1] - 1
        for c in range(carry.shape[0]):
            carry[c] = 0
        for t in range(last, first - 1, -1):
            _step_back(re, im, gain, 0, f, h[t - 1] if t > first else h0[s], h[t], d[t], D, carry)
        for t in range(first, last + 1) if f < m else range(0):
            _step_back(re, im, gain, f, m, h[t + 1] if t < last else h0[s], h[t], d[t], D, carry)


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def _step_back(
    re: Array, im: Array, gain: Array, begin: int, end: int, before: Array, now: Array, e: Array, D: Array, carry: Array
) -> None:
    """Take one step of `scan_back` with the pairs from begin to end."""
    m = re.shape[0]
    x, y, g, h, u, v, p, q = before[:m], before[m:], now[:m], now[m:], e[:m], e[m:], carry[:m], carry[m:]
    of_h, of_before, of_turned = D[0], D[1], D[2]
    for c in range(begin, end):
        u[c] += p[c]
    for c in range(begin, end):
        v[c] += q[c]
    for c in range(begin, end):
        p[c] = re[c] * u[c] + im[c] * v[c]
    for c in range(begin, end):
        q[c] = re[c] * v[c] - im[c] * u[c]
    for c in range(begin, end):
        of_h[c] += u[c] * g[c] + v[c] * h[c]
    for c in range(begin, end):
        of_before[c] += u[c] * x[c] + v[c] * y[c]
    for c in range(begin, end):
        of_turned[c] += v[c] * x[c] - u[c] * y[c]
    for c in range(begin, end):
        u[c] *= gain[c]
    for c in range(begin, end):
        v[c] *= gain[c]
