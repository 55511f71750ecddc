"""The activations of the compiled loops, and their slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from echolearn.validation import Array

# The compiler may reorder and fuse sums, but must not assume that there are no NaN and infinity. A division must not
# raise, or loops would not be vectorised.
COMPILER_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
}

# What only other compiled code calls needs no way in from Python, which takes about as long to compile as a loop.
INNER_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _tanh_of(x: float) -> float:
    """Return tanh x, by the formula for its precision; only compiled code may call this function."""
    raise NotImplementedError


@overload(_tanh_of, inline="always", strict=False, jit_options=COMPILER_OPTIONS)
def _choose_tanh(x: object) -> Callable[..., object]:
    return _tanh_32 if x == types.float32 else _tanh_64


def _tanh_32(x: np.float32) -> np.float32:
    """Return x P(x²) / Q(x²) for x in [-8, 8]: at most 4e-7 from tanh in float32, and free of calls.

    P and Q are polynomials of degrees 3 and 4 with the least maximum error, found by linear programs.
    """
    one = np.float32(1.0)
    high = np.float32(8.0)
    x = high if x > high else x
    x = -high if x < -high else x
    u = x * x
    p = np.float32(2.938366860873609e-3) + u * np.float32(1.1305663617561342e-5)
    p = np.float32(0.9999993627977622) + u * (np.float32(0.12913194318824717) + u * p)
    q = np.float32(2.3696583427620897e-4) + u * np.float32(2.4224627497386684e-7)
    q = one + u * (np.float32(0.46246291006020995) + u * (np.float32(0.02376189032614955) + u * q))
    return x * p / q


def _precise_tanh_of(x: float) -> float:
    """Return tanh x to rounding; only compiled code may call this function."""
    raise NotImplementedError


@overload(_precise_tanh_of, inline="always", strict=False, jit_options=COMPILER_OPTIONS)
def _choose_precise_tanh(x: object) -> Callable[..., object]:
    return _precise_tanh_32 if x == types.float32 else _tanh_64


def _precise_tanh_32(x: np.float32) -> np.float32:
    """Return x P(x²) / Q(x²) for x in [-9, 9], as `_tanh_32`, with degrees 4 and 5: at most 1e-9 off before rounding.

    The errors that remain are of either sign: they average out in statistics over time and over units, where those of
    `_tanh_32` would add up, and exported models would differ by them.
    """
    one = np.float32(1.0)
    high = np.float32(9.0)
    x = high if x > high else x
    x = -high if x < -high else x
    u = x * x
    p = np.float32(3.163730695331059e-5) + u * np.float32(5.092702781981265e-8)
    p = np.float32(0.1378714443935677) + u * (np.float32(4.010765071664455e-3) + u * p)
    p = one + u * p
    q = np.float32(1.6211777850507267e-6) + u * np.float32(7.407051725636953e-10)
    q = np.float32(0.027745701361459436) + u * (np.float32(4.211458999307e-4) + u * q)
    q = one + u * (np.float32(0.4712047711869323) + u * q)
    return x * p / q


def _tanh_64(x: float) -> float:
    """Return tanh x = e / (e + 2), e = exp(2x) - 1.

    The power series gives e at 2x / 64; six times, e(2y) = e(y) (e(y) + 2) doubles its argument. The relative error is
    at most 2e-15. In a tile it takes 2.3 ns per number, where the library's tanh takes 3.5.
    """
    y = x if x > 0 else -x
    y = 20.0 if y > 20.0 else y
    y *= 1 / 32
    p = 1 / 6227020800 + y * (1 / 87178291200 + y * (1 / 1307674368000 + y * (1 / 20922789888000)))
    p = 1 / 3628800 + y * (1 / 39916800 + y * (1 / 479001600 + y * p))
    p = 1 / 5040 + y * (1 / 40320 + y * (1 / 362880 + y * p))
    p = 1 / 24 + y * (1 / 120 + y * (1 / 720 + y * p))
    e = y * (1 + y * (1 / 2 + y * (1 / 6 + y * p)))
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    e *= e + 2
    t = e / (e + 2)
    return t if x > 0 else -t


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def activate(code: int, z: Array) -> None:
    """Replace z by f(z); the sigmoid is (1 + tanh(z / 2)) / 2, so that one loop serves it and tanh."""
    if code <= 1:
        factor = z.dtype.type(1 if code == 1 else 0.5)
        shift = z.dtype.type(0 if code == 1 else 0.5)
        for i in range(z.shape[0]):
            z[i] = shift + factor * _tanh_of(factor * z[i])
    elif code == 2:
        for i in range(z.shape[0]):
            z[i] = 0 if z[i] < 0 else z[i]  # in this order NaN stays NaN


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def precise_tanh(z: Array) -> None:
    """Replace z by tanh z, to rounding."""
    for i in range(z.shape[0]):
        z[i] = _precise_tanh_of(z[i])


@njit(**INNER_OPTIONS, **COMPILER_OPTIONS)
def times_slope(code: int, f: Array, z: Array) -> None:
    """Multiply z by f', which is computed from the value f: f - f² for the sigmoid, 1 - f² for tanh."""
    if code <= 1:
        constant, linear = z.dtype.type(code), z.dtype.type(1 - code)
        for i in range(z.shape[0]):
            z[i] *= constant + f[i] * (linear - f[i])
    elif code == 2:
        for i in range(z.shape[0]):
            z[i] = z[i] if f[i] != 0 else 0
