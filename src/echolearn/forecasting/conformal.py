"""Uncertainty of forecasts: quantiles and paths from the errors of the training series' own rolling origins."""

from __future__ import annotations

import numpy as np

from echolearn.forecasting.model import DirectModel, Part, spreads_ahead
from echolearn.validation import Array

DEPENDENT = 2  # neighbouring origins share most of their errors: so many count as one


def error_quantile(model: DirectModel, coverage: float) -> float:
    """Return the quantile of the absolute scaled errors of all horizons, corrected for the number of origins."""
    errors = np.abs(model.errors[~np.isnan(model.errors)])
    if not len(errors):
        return 0.0
    origins = max(len(model.errors) / DEPENDENT, 1.0)
    level = min(1.0, coverage * (1 + 1 / origins))
    return float(np.quantile(errors, level))


def interval(model: DirectModel, part: Part, Z: Array, coverage: float) -> tuple[Array, Array]:
    """Return bounds (steps, dims) around forecasts Z in the scale of the errors."""
    width = error_quantile(model, coverage) * spreads_ahead(model, part, len(Z))
    return Z - width, Z + width


def paths(model: DirectModel, part: Part, Z: Array, count: int, rng: np.random.Generator) -> Array:
    """Return sample paths (count, steps, dims): the forecast and the whole run of errors of origins drawn at random.

    An error that is not known is drawn from its column. Beyond the last horizon its error is kept, and grows as in the
    intervals. Signs are drawn too: the errors of few origins say little of their asymmetry.
    """
    steps, dims = Z.shape
    errors = model.errors[rng.integers(len(model.errors), size=count)].copy()
    for j in np.flatnonzero(np.isnan(errors).any(axis=0)):
        known = model.errors[~np.isnan(model.errors[:, j]), j]
        gaps = np.isnan(errors[:, j])
        errors[gaps, j] = known[rng.integers(len(known), size=gaps.sum())] if len(known) else 0.0
    errors *= rng.choice([-1.0, 1.0], size=(count, 1))
    by_step = errors.reshape(count, dims, model.horizon)[:, :, np.minimum(np.arange(steps), model.horizon - 1)]
    return np.asarray(Z + by_step.swapaxes(1, 2) * spreads_ahead(model, part, steps))
