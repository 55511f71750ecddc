"""L-BFGS on the logarithm of an error: for few data without noise, where every gradient is over all of them.

Adam's steps stay as large as its step size; near a minimum of 1e-12 they jump around it. L-BFGS takes curvature into
account and ends orders of magnitude lower. The logarithm makes errors of 1 and of 1e-12 the same problem.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize

from echolearn.training.optimizers import Weights
from echolearn.validation import Array

MEMORY_PAIRS = 20  # pairs of steps and gradient differences that the curvature is estimated from
DIVERGED_LOG_ERROR = 100.0  # the logarithm, above that of the start, at which an error counts that is not finite

ValueAndGradient = Callable[[Weights], tuple[float, Weights]]


def minimize_log(
    objective: ValueAndGradient, start: Weights, iterations: int, on_iteration: Callable[[int, float, Weights], object]
) -> None:
    """Lower log(error) from `start` by L-BFGS; after each iteration, on_iteration(number, error, weights).

    objective: from weights to the error (> 0) and its gradient; FloatingPointError if it is not finite. The search ends
    when on_iteration returns True, when no step lowers the error, or after the given number of iterations.
    """
    first = np.log(objective(start)[0])
    number = 0

    def of_vector(p: Array) -> tuple[float, Array]:
        try:
            value, gradient = objective(_unflattened(p, start))
        except (FloatingPointError, np.linalg.LinAlgError):
            return first + DIVERGED_LOG_ERROR, np.zeros_like(p)
        slope = _flattened(gradient) / value
        if not (np.isfinite(value) and value > 0 and np.isfinite(slope).all()):
            return first + DIVERGED_LOG_ERROR, np.zeros_like(p)
        return float(np.log(value)), slope

    def after(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal number
        number += 1
        weights = _unflattened(intermediate_result.x.copy(), start)
        if on_iteration(number, float(np.exp(intermediate_result.fun)), weights):
            raise StopIteration

    optimize.minimize(
        of_vector,
        _flattened(start),
        jac=True,
        method="L-BFGS-B",
        callback=after,
        options={
            "maxiter": iterations,
            "maxfun": 3 * iterations + 20,
            "maxcor": MEMORY_PAIRS,
            "ftol": 0.0,
            "gtol": 0.0,
        },
    )


def _flattened(weights: Weights) -> Array:
    return np.concatenate([value.ravel() for value in weights.values()])


def _unflattened(p: Array, like: Weights) -> Weights:
    """Return the vector as weights with the names and shapes of others."""
    ends = np.cumsum([value.size for value in like.values()])
    parts = np.split(p, ends[:-1])
    return {name: part.reshape(value.shape) for (name, value), part in zip(like.items(), parts, strict=True)}
