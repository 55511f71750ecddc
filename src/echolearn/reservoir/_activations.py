"""The activation functions f of the state equation (eq. 1), their slopes f', and the leak.

The compiled loops know an activation by its number, and none that users have registered: where F = f(z) is kept for the
gradient, those keep z itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from echolearn.validation import Array

ACTIVATIONS = {"sigmoid": 0, "tanh": 1, "relu": 2, "identity": 3}

BOUNDED_ACTIVATIONS = ("sigmoid", "tanh")  # those whose values have limits, at which units saturate

Function = Callable[[Array], Array]  # to an array of the same shape

_FUNCTIONS: dict[str, Function] = {
    "sigmoid": lambda z: 0.5 + 0.5 * np.tanh(0.5 * z),
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "identity": lambda z: z,
}
_SLOPES: dict[str, Function] = {
    "sigmoid": lambda F: F * (1 - F),
    "tanh": lambda F: 1 - F * F,
    "relu": lambda F: (F > 0) * 1.0,
    "identity": np.ones_like,
}


_REGISTERED: dict[str, tuple[Function, Function]] = {}  # functions of z that users have registered, and derivatives
PROBES = np.array([-2.3, -1.1, -0.4, 0.3, 0.9, 1.7, 2.6])  # where a derivative is compared with differences


def register(name: str, function: Function, derivative: Function, *, replace: bool = False) -> None:
    """Make a function of your own available by its name as an `activation`, for states, learning and forecasts.

    Its networks run in NumPy, step by step: slower than the activations that are compiled. Model files keep the name
    alone; register the function again before such a file is loaded. Exports and streams refuse it.

    Parameters
    ----------
    name : str
        The name, which must not be that of a built-in activation.
    function : callable
        From an array z to an array f(z) of the same shape; it may be compiled by numba.
    derivative : callable
        From an array z to f'(z). It is compared with differences of f at a few places.
    replace : bool, default False
        Whether an activation that is registered under this name may be replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.reservoir import register
    >>> register("sine", np.sin, np.cos, replace=True)
    >>> X = np.sin(np.arange(300) / 5)[:, None]
    >>> ESNRegressor(20, reservoir={"activation": "sine"}, epochs=2).fit(X[:-1], X[1:]).reservoir_.activation
    'sine'
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name={name!r:.80}; expected a word, such as 'softsign'.")
    if name in ACTIVATIONS:
        raise ValueError(f"name={name!r} is a built-in activation; choose another name.")
    if name in _REGISTERED and not replace:
        raise ValueError(f"name={name!r} is registered already; replace=True replaces it.")
    h = 1e-6
    values, slopes = np.asarray(function(PROBES)), np.asarray(derivative(PROBES))
    if values.shape != PROBES.shape or slopes.shape != PROBES.shape:
        raise ValueError(f"name={name!r}: function and derivative must return arrays of the shape they are given.")
    expected = (np.asarray(function(PROBES + h)) - np.asarray(function(PROBES - h))) / (2 * h)
    wrong = ~(np.abs(slopes - expected) <= 1e-4 * (1 + np.abs(expected)))
    if wrong.any():
        z = PROBES[wrong.argmax()]
        raise ValueError(
            f"name={name!r}: at z = {z:g} the derivative is {slopes[wrong.argmax()]:.6g}, but differences of the "
            f"function give {expected[wrong.argmax()]:.6g}. Give the derivative f'(z) as a function of z."
        )
    _REGISTERED[name] = function, derivative


def is_registered(name: str) -> bool:
    """Return whether an activation is one that a user has registered, which no compiled loop knows."""
    return name in _REGISTERED


def activation_names() -> tuple[str, ...]:
    """Return the names of all activations, built-in and registered."""
    return (*ACTIVATIONS, *_REGISTERED)


def activate(name: str, z: Array) -> Array:
    """Return f(z)."""
    if name in _REGISTERED:
        return np.asarray(_REGISTERED[name][0](z), dtype=z.dtype)
    return np.asarray(_FUNCTIONS[name](z))


def slope(name: str, F: Array) -> Array:
    """Return f'(z), computed from F = f(z) alone; of a registered activation F is z."""
    if name in _REGISTERED:
        return np.asarray(_REGISTERED[name][1](F), dtype=F.dtype)
    return np.asarray(_SLOPES[name](F))


def leaky_update(h: Array, F: Array, a: Array) -> Array:
    """Return (1 - a) h + a F: the states that follow h where the activities are F = f(z) and the leaks a."""
    return np.asarray((1 - a) * h + a * F)
