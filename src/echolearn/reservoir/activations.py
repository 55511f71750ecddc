"""The activation functions f of the state equation (eq. 1), their slopes f', and the leak.

The compiled loops know an activation by its number. The functions here serve everything that is not compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from echolearn.validation.array_types import Array

ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2, "identity": 3}

BOUNDED = ("sigmoid", "tanh")  # those whose values have limits, at which units saturate

_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda z: 0.5 + 0.5 * np.tanh(0.5 * z),
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "identity": lambda z: z,
}
_SLOPES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda F: F * (1 - F),
    "tanh": lambda F: 1 - F * F,
    "relu": lambda F: (F > 0) * 1.0,
    "identity": np.ones_like,
}


def activate(name: str, z: Array) -> Array:
    """Return f(z)."""
    return np.asarray(_FUNCTIONS[name](z))


def slope(name: str, F: Array) -> Array:
    """Return f'(z), computed from F = f(z) alone."""
    return np.asarray(_SLOPES[name](F))


def leaky_update(h: Array, F: Array, a: Array) -> Array:
    """Return (1 - a) h + a F: the states that follow h where the activities are F = f(z) and the leaks a."""
    return np.asarray((1 - a) * h + a * F)
