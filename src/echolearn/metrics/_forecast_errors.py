"""Errors of forecasts: how long they are valid on chaotic series, and how certain their means are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from echolearn.datasets._chaos import TRUE_CHAOS
from echolearn.validation import Array, check_number, check_positive

VALID_ERROR = 0.4  # the normalised error up to which a forecast counts as valid, as in most papers on the subject


def valid_time(
    true: ArrayLike | Sequence[ArrayLike],
    predicted: ArrayLike | Sequence[ArrayLike],
    *,
    threshold: float = VALID_ERROR,
    dt: float = 1.0,
    lyapunov: float | str = 1.0,
    scale: ArrayLike | None = None,
) -> float | Array:
    """Return how long a forecast stays within a threshold of the truth.

    The error at a step is the root of the mean over dimensions of the squared error, each dimension in units of its
    standard deviation. The valid time ends at the first step whose error reaches the threshold, or is not finite.

    Parameters
    ----------
    true, predicted : array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
        The true values and the forecasts. A list has one array per forecast.
    threshold : float, default=0.4
        The error at which a forecast is no longer valid, in standard deviations. Values from 0.3 to 0.5 are usual;
        use that of the results that you compare with.
    dt : float, default=1.0
        The time between two steps. With the default the valid time is counted in steps.
    lyapunov : float or str, default=1.0
        The largest Lyapunov exponent, per unit of time: the valid time is then counted in Lyapunov times. Or the name
        of the function of `echolearn.datasets` that generated the series with its default parameters, for example
        "lorenz": its exponent is known, and for how long its solution is true. A longer comparison is refused.
    scale : float or array of shape (n_dims,), default=None
        The standard deviation of each dimension. None: that of the true values (of all forecasts together). Pass the
        standard deviation of the whole series if forecasts are short.

    Returns
    -------
    float or array of shape (n_forecasts,)
        The valid time of the forecast, or of each forecast of a list. It is the length of the forecast if the error
        stays below the threshold to the end.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.metrics import valid_time
    >>> true = np.sin(np.arange(100) / 5)
    >>> valid_time(true, true + 1e-3 * np.exp(0.1 * np.arange(100)), dt=0.5)
    28.5

    The comparison with a generated series is refused beyond the time for which its solution is true:

    >>> from echolearn.datasets import lorenz
    >>> series = lorenz(1000)
    >>> round(valid_time(series, series + 0.1, dt=0.02, lyapunov="lorenz"), 1)
    18.1
    """
    check_positive("threshold", threshold)
    factor = check_positive("dt", dt)
    many, errors = _errors(true, predicted, scale)
    if isinstance(lyapunov, str):
        factor *= _known_exponent(lyapunov, max(map(len, errors)), factor)
    else:
        factor *= check_positive("lyapunov", lyapunov)
    steps = [int(wrong.argmax()) if (wrong := e >= threshold).any() else len(e) for e in errors]
    times = np.array(steps) * factor
    return times if many else float(times[0])


def _known_exponent(name: str, steps: int, dt: float) -> float:
    """Return the Lyapunov exponent of a series, or refuse more steps than its solution is true for."""
    if name not in TRUE_CHAOS:
        raise ValueError(f"lyapunov={name!r:.80}; expected a number > 0, or one of {', '.join(TRUE_CHAOS)}.")
    exponent, true_for = TRUE_CHAOS[name]
    if steps * dt * exponent > true_for:
        raise ValueError(
            f"the comparison has {steps} steps, {steps * dt * exponent:.1f} Lyapunov times with dt={dt:g}, but "
            f"rounding errors let a solution of {name} be true for {true_for:g} Lyapunov times only. Compare at most "
            f"the first {int(true_for / (dt * exponent))} steps of each forecast."
        )
    return exponent


def step_errors(true: Array, predicted: Array, scale: Array) -> Array:
    """Return the normalised error of every step: (..., dims) -> (...); not finite becomes infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.sqrt((((predicted - true) / scale) ** 2).mean(axis=-1))
    return np.where(np.isfinite(errors), errors, np.inf)


def _errors(true: object, predicted: object, scale: ArrayLike | None) -> tuple[bool, list[Array]]:
    """Return whether lists were given, and the errors of each forecast in units of the standard deviation."""
    many = isinstance(true, (list, tuple)) and any(np.ndim(entry) > 0 for entry in true)
    if many != (isinstance(predicted, (list, tuple)) and any(np.ndim(entry) > 0 for entry in predicted)):
        raise ValueError("true and predicted must both be arrays, or both lists of arrays.")
    ours, theirs = (list(v) if many else [v] for v in (true, predicted))  # type: ignore[call-overload]
    if len(ours) != len(theirs):
        raise ValueError(f"true has {len(ours)} forecasts, predicted {len(theirs)}.")
    pairs = [(_rows(t), _rows(p)) for t, p in zip(ours, theirs, strict=True)]
    for i, (t, p) in enumerate(pairs):
        if t.shape != p.shape or len(t) == 0:
            raise ValueError(f"forecast {i}: true has the shape {t.shape}, predicted {p.shape}; expected equal ones.")
    if scale is None:
        unit = np.concatenate([t for t, _ in pairs]).std(axis=0)
    else:
        unit = np.asarray(scale, dtype=np.float64)
        if unit.ndim == 0:
            check_number("scale", float(unit))
    if not (unit > 0).all():
        raise ValueError("the standard deviation of a dimension is 0: give scale=, that of the whole series.")
    return many, [step_errors(t, p, np.asarray(unit)) for t, p in pairs]


def _rows(values: object) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise ValueError(f"a series has {array.ndim} dimensions; expected (n_steps,) or (n_steps, n_dims).")
    return array[:, None] if array.ndim == 1 else array


def mean_and_error(values: Array, lags: int) -> tuple[float, float]:
    """Return the mean of values in the order of time, correlated over some lags, and its standard error.

    With the correction of Harvey, Leybourne and Newbold for few values, so that the mean over its error follows a t
    distribution. Where autocovariances sum to less than nothing, only the variance counts. NaN for fewer than two.
    """
    n, lags = len(values), min(lags, len(values) - 1)
    if n < 2:
        return float(values.mean()) if n else float("nan"), float("nan")
    x = values - values.mean()
    variance = [float(x[j:] @ x[: n - j]) / n for j in range(lags + 1)]
    total = variance[0] + 2 * sum(variance[1:])
    correction = (n + 1 - 2 * (lags + 1) + lags * (lags + 1) / n) / n
    if not total > 0 or not correction > 0:
        total, correction = variance[0], (n - 1) / n
    return float(values.mean()), float(np.sqrt(total / n / correction))
