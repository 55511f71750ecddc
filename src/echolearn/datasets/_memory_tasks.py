"""Sequences that require memory: NARMA systems and superimposed oscillators."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from echolearn.validation import as_generator, check_integer

Series = NDArray[np.float64]

# alpha, beta, gamma, delta of `narma`, by order
NARMA_COEFFICIENTS = {10: (0.3, 0.05, 1.5, 0.1), 30: (0.2, 0.004, 1.5, 0.201)}
NARMA_DRAWS = 20  # of u before giving up
NARMA_DIVERGED_VALUE = 1e3

# The frequencies of the literature, one per oscillator.
MSO_FREQUENCIES = (0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32)


def narma(
    steps: int, order: int = 10, *, discard: int = 200, random_state: int | np.random.Generator | None = 0
) -> tuple[Series, Series]:
    """Generate the input and output of a NARMA system (nonlinear autoregressive moving average).

    The equation is y_{t+1} = alpha y_t + beta y_t Σ_{i < order} y_{t-i} + gamma u_{t-order+1} u_t + delta, with u
    uniform in [0, 0.5].

    Parameters
    ----------
    steps : int
        Number of steps to return.
    order : {10, 30}, default 10
        How many steps the output depends on. alpha, beta, gamma, delta are those of the literature: 0.3, 0.05, 1.5, 0.1
        for order 10, and 0.2, 0.004, 1.5, 0.201 for order 30.
    discard : int, default 200
        Number of first steps that are not returned. The system starts with y = 0.
    random_state : int, numpy.random.Generator or None, default 0
        Seed of the inputs u. Use another one for an independent sequence, for instance as test data.

    Returns
    -------
    u : array of shape (steps, 1)
        The inputs.
    y : array of shape (steps, 1)
        The outputs. Row t is the y_{t+1} of the equation, the first output that depends on row t of u.

    Notes
    -----
    The system diverges for some draws of u, more often in longer sequences. Then u is drawn again, up to 20 times.

    References
    ----------
    Atiya and Parlos, New results on recurrent network training, IEEE Trans. Neural Networks 11 (2000).

    Examples
    --------
    >>> from echolearn.datasets import narma
    >>> u, y = narma(300)
    >>> u.shape, y.shape
    ((300, 1), (300, 1))
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    if not isinstance(order, Integral) or order not in NARMA_COEFFICIENTS:
        raise ValueError(
            f"order={order!r}; expected one of {sorted(NARMA_COEFFICIENTS)}, the systems of the literature."
        )
    alpha, beta, gamma, delta = NARMA_COEFFICIENTS[order]
    rng = as_generator(random_state)
    for _ in range(NARMA_DRAWS):
        u = rng.uniform(0.0, 0.5, discard + steps + order - 1)
        y = np.zeros(len(u) + 1)  # y[t + 1] belongs to u[t]
        for t in range(order - 1, len(u)):
            past = y[t - order + 1 : t + 1].sum()
            y[t + 1] = alpha * y[t] + beta * y[t] * past + gamma * u[t - order + 1] * u[t] + delta
            if y[t + 1] > NARMA_DIVERGED_VALUE:
                break
        else:
            return u[-steps:, None], y[-steps:, None]
    raise ValueError(
        f"narma(steps={steps}, order={order}): {NARMA_DRAWS} draws of u all diverged. Use fewer steps at a time."
    )


def mso(steps: int, oscillators: int = 8) -> Series:
    """Generate multiple superimposed oscillators (MSO), a sum of sines with different frequencies.

    The equation is x_t = Σ_i sin(φ_i t), t = 0, 1, ...

    Parameters
    ----------
    steps : int
        Number of steps to return.
    oscillators : int, default 8
        Number of sines, at most 12: the first of the frequencies φ = 0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97,
        1.08, 1.19, 1.27, 1.32. With more sines the series is harder to forecast.

    Returns
    -------
    array of shape (steps, 1)
        The series. It repeats itself only after a very long time.

    References
    ----------
    .. [1] Jaeger and Haas, Harnessing nonlinearity, Science 304 (2004), supplement.
    .. [2] Schmidhuber and others, Training recurrent networks by Evolino, Neural Computation 19 (2007).
    .. [3] Koryakin and others, Balanced echo state networks, Neural Networks 36 (2012).

    Examples
    --------
    >>> from echolearn.datasets import mso
    >>> mso(3, oscillators=2).round(3)  # sin 0.2 t + sin 0.311 t
    array([[0.   ],
           [0.505],
           [0.972]])
    """
    steps = check_integer("steps", steps, 1)
    count = check_integer("oscillators", oscillators, 1)
    if count > len(MSO_FREQUENCIES):
        raise ValueError(
            f"oscillators={count}; expected at most {len(MSO_FREQUENCIES)}, the frequencies of the literature."
        )
    t = np.arange(steps)[:, None]
    return np.asarray(np.sin(t * np.array(MSO_FREQUENCIES[:count])).sum(axis=1, keepdims=True))
