"""Sequences that ask for memory: NARMA systems and superimposed oscillators."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from echolearn.validation.values import as_generator, check_integer

Array = NDArray[np.float64]

# alpha, beta, gamma, delta of `narma`, by order
_NARMA = {10: (0.3, 0.05, 1.5, 0.1), 30: (0.2, 0.004, 1.5, 0.201)}
_TRIES = 20  # draws of u before giving up

# The frequencies of the literature, one more an oscillator.
_MSO = (0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32)


def narma(
    steps: int, order: int = 10, *, discard: int = 200, random_state: int | np.random.Generator | None = 0
) -> tuple[Array, Array]:
    """y_{t+1} = alpha y_t + beta y_t Σ_{i < order} y_{t-i} + gamma u_{t-order+1} u_t + delta, u uniform in [0, 0.5].

    Returns u and y, (steps, 1) each, so aligned that row t of y is the last value that row t of u takes part in: the
    y_{t+1} of the equation. Order 10: alpha 0.3, beta 0.05, gamma 1.5, delta 0.1; order 30: 0.2, 0.004, 1.5, 0.201.
    The first `discard` steps, from y = 0, are thrown away. Some draws of u run off to infinity (the more steps, the
    more of them): another is drawn then.

    Atiya and Parlos, New results on recurrent network training, IEEE Trans. Neural Networks 11 (2000).
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    if not isinstance(order, Integral) or order not in _NARMA:
        raise ValueError(f"order={order!r}; expected one of {sorted(_NARMA)}, the systems of the literature.")
    alpha, beta, gamma, delta = _NARMA[order]
    rng = as_generator(random_state)
    for _ in range(_TRIES):
        u = rng.uniform(0.0, 0.5, discard + steps + order - 1)
        y = np.zeros(len(u) + 1)  # y[t + 1] belongs to u[t]
        for t in range(order - 1, len(u)):
            past = y[t - order + 1 : t + 1].sum()
            y[t + 1] = alpha * y[t] + beta * y[t] * past + gamma * u[t - order + 1] * u[t] + delta
            if y[t + 1] > 1e3:
                break
        else:
            return u[-steps:, None], y[-steps:, None]
    raise ValueError(
        f"narma(steps={steps}, order={order}): {_TRIES} draws of u all ran off to infinity. Use fewer steps at a time."
    )


def mso(steps: int, oscillators: int = 8) -> Array:
    """x_t = Σ_i sin(φ_i t), t = 0, 1, ..., over the first `oscillators` of φ = 0.2, 0.311, 0.42, 0.51, 0.63, 0.74,
    0.85, 0.97, 1.08, 1.19, 1.27, 1.32: (steps, 1). Simple to hear, hard to hold: the sum repeats itself only after
    very long.

    Jaeger and Haas, Harnessing nonlinearity, Science 304 (2004), supplement; Schmidhuber and others, Training
    recurrent networks by Evolino, Neural Computation 19 (2007); Koryakin and others, Balanced echo state networks,
    Neural Networks 36 (2012).
    """
    steps = check_integer("steps", steps, 1)
    count = check_integer("oscillators", oscillators, 1)
    if count > len(_MSO):
        raise ValueError(f"oscillators={count}; expected at most {len(_MSO)}, the frequencies of the literature.")
    t = np.arange(steps)[:, None]
    return np.asarray(np.sin(t * np.array(_MSO[:count])).sum(axis=1, keepdims=True))
