"""Errors of forecasts of chaotic series: how long they are valid, how fast they grow, and how the spectra compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from echolearn.validation import Array, check_integer, check_number, check_positive

VALID_ERROR = 0.4  # the normalised error up to which a forecast counts as valid, as in most papers on the subject


def valid_time(
    true: ArrayLike | Sequence[ArrayLike],
    predicted: ArrayLike | Sequence[ArrayLike],
    *,
    threshold: float = VALID_ERROR,
    dt: float = 1.0,
    lyapunov: float = 1.0,
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
    lyapunov : float, default=1.0
        The largest Lyapunov exponent, per unit of time. If it is given, the valid time is counted in Lyapunov times.
        `echolearn.datasets` states it for each chaotic series.
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
    """
    check_positive("threshold", threshold)
    factor = check_positive("dt", dt) * check_positive("lyapunov", lyapunov)
    many, errors = _errors(true, predicted, scale)
    times = np.array([valid_steps(of_forecast, threshold) for of_forecast in errors]) * factor
    return times if many else float(times[0])


def lyapunov_scaled_error(
    true: ArrayLike | Sequence[ArrayLike],
    predicted: ArrayLike | Sequence[ArrayLike],
    *,
    lyapunov: float,
    dt: float = 1.0,
    threshold: float = VALID_ERROR,
    scale: ArrayLike | None = None,
) -> float | Array:
    """Return the error of a forecast with the growth that chaos alone would cause divided out.

    In a chaotic series any error grows by exp(lyapunov dt) per step, on average, even in a perfect model. The
    Lyapunov-scaled error is the geometric mean of error_t exp(-lyapunov t dt) over the steps within the valid time: the
    error at the start that would explain the errors seen. It compares models on forecasts of different lengths.

    Parameters
    ----------
    true, predicted, dt, scale
        As in `valid_time`.
    lyapunov : float
        The largest Lyapunov exponent, per unit of time.
    threshold : float, default=0.4
        The normalised error at which counting ends, because errors have stopped growing there.

    Returns
    -------
    float or array of shape (n_forecasts,)
        The scaled error, in standard deviations. If the error of the first step reaches the threshold, it is the error
        of that step.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.metrics import lyapunov_scaled_error
    >>> true = np.sin(np.arange(100) / 5)
    >>> error = 1e-3 * np.exp(0.1 * np.arange(1, 101))
    >>> round(lyapunov_scaled_error(true, true + error, lyapunov=0.1, scale=1.0), 9)
    0.001
    """
    rate = check_positive("dt", dt) * check_positive("lyapunov", lyapunov)
    check_positive("threshold", threshold)
    many, errors = _errors(true, predicted, scale)
    found = []
    for of_forecast in errors:
        count = max(1, valid_steps(of_forecast, threshold))
        logs = np.log(np.maximum(of_forecast[:count], np.finfo(float).tiny)) - rate * np.arange(1, count + 1)
        found.append(float(np.exp(logs.mean())))
    return np.array(found) if many else found[0]


def spectrum_distance(true: ArrayLike, predicted: ArrayLike, *, smoothing: int = 5) -> float:
    """Return the Hellinger distance of two power spectra, averaged over dimensions.

    A forecast that has diverged from a chaotic series may still be on the same attractor, and then has the same power
    spectrum. The spectrum is the periodogram about the mean, smoothed, and divided by its sum.

    Parameters
    ----------
    true, predicted : array of shape (n_steps,) or (n_steps, n_dims)
        A part of the series, and a forecast of the same number of steps. More steps show the spectrum better.
    smoothing : int, default=5
        The standard deviation of the Gaussian kernel by which spectra are smoothed, in frequencies. 0: no smoothing.
        Use a larger value for short series, whose periodograms are noisy.

    Returns
    -------
    float
        0 for equal spectra, 1 for spectra without a common frequency.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.metrics import spectrum_distance
    >>> t = np.arange(1000)
    >>> spectrum_distance(np.sin(0.2 * t), np.sin(0.9 * t)) > 0.9
    True
    """
    width = check_integer("smoothing", smoothing, 0)
    _, [(one, other)] = _pairs(np.asarray(true, float), np.asarray(predicted, float))
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 1.0
    P, Q = _spectrum(one, width), _spectrum(other, width)
    return float(np.sqrt(np.maximum(0.0, 1 - np.sqrt(P * Q).sum(axis=0))).mean())


def _spectrum(series: Array, width: int) -> Array:
    """Return the smoothed power spectrum (frequencies, dims), its sum 1 in every dimension."""
    power = np.abs(np.fft.rfft(series - series.mean(axis=0), axis=0)) ** 2
    if width:
        offsets = np.arange(-4 * width, 4 * width + 1)
        kernel = np.exp(-0.5 * (offsets / width) ** 2)
        power = np.stack([np.convolve(column, kernel, mode="full") for column in power.T], axis=1)
    total = power.sum(axis=0)
    if not (total > 0).all():
        raise ValueError("a dimension of a series is constant; it has no spectrum.")
    return np.asarray(power / total)


def step_errors(true: Array, predicted: Array, scale: Array) -> Array:
    """Return the normalised error of every step: (..., dims) -> (...); not finite becomes infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.sqrt((((predicted - true) / scale) ** 2).mean(axis=-1))
    return np.where(np.isfinite(errors), errors, np.inf)


def valid_steps(errors: Array, threshold: float) -> int:
    """Return the number of steps before the first whose error reaches the threshold."""
    wrong = errors >= threshold
    return int(wrong.argmax()) if wrong.any() else len(errors)


def _pairs(true: object, predicted: object) -> tuple[bool, list[tuple[Array, Array]]]:
    """Return whether lists were given, and pairs of arrays (steps, dims)."""
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
    return many, pairs


def _rows(values: object) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise ValueError(f"a series has {array.ndim} dimensions; expected (n_steps,) or (n_steps, n_dims).")
    return array[:, None] if array.ndim == 1 else array


def _errors(true: object, predicted: object, scale: ArrayLike | None) -> tuple[bool, list[Array]]:
    """Return whether lists were given, and the errors of each forecast in units of the standard deviation."""
    many, pairs = _pairs(true, predicted)
    if scale is None:
        unit = np.concatenate([t for t, _ in pairs]).std(axis=0)
    else:
        unit = np.asarray(scale, dtype=np.float64)
        if unit.ndim == 0:
            check_number("scale", float(unit))
    if not (unit > 0).all():
        raise ValueError("the standard deviation of a dimension is 0: give scale=, that of the whole series.")
    return many, [step_errors(t, p, np.asarray(unit)) for t, p in pairs]
