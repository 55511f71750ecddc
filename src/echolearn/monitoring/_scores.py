"""Measures of how unusual an error is among earlier ones: scores, and the probability of larger errors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from echolearn.validation import Array

TAIL_SHARE = 0.1  # the share of largest scores to which the tail is fitted
MAX_TAIL_INDEX = 0.9  # of the index of a tail: from 1 on it has no mean
MAX_LAGS = 100  # up to which correlation in time is added up
NORMAL_MAD_FACTOR = 1.4826  # the standard deviation of normal numbers over their median absolute deviation
MAX_NORMAL_SCORE = 3.0  # normal scores are cut off here, so that a single error is no drift


@dataclass(frozen=True, eq=False)
class Reference:
    """Errors by which later ones are judged."""

    centre: Array  # (n_outputs,): the median of the errors of each output
    scale: Array  # (n_outputs,): their median absolute deviation as a standard deviation
    one_sided: bool  # whether only large errors are unusual, as for losses, and not those far below the centre too
    scores: Array  # of the reference itself, ascending
    # u, p_u, sigma, xi: scores s above u are exceeded with probability p_u (1 + xi (s^k - u^k) / sigma)^(-1/xi)
    tail: tuple[float, float, float, float]

    @classmethod
    def of(cls, errors: Array, *, one_sided: bool, unusual: Array | None = None) -> Reference:
        """Return the reference of errors (n, n_outputs) in the order of time; NaN stands for those not known.

        unusual: of which errors (n,) it is known that they were anomalies. They count as the largest of the others.
        """
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # an output that is never known
            centre = np.nan_to_num(np.nanmedian(errors, axis=0))
            away = np.abs(errors - centre)
            deviation = np.nan_to_num(np.nanmedian(away, axis=0))
            spread = np.nan_to_num(np.nanmean(away, axis=0))
        least = 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny / 1e-12)
        scale = np.maximum(np.where(deviation > 0, NORMAL_MAD_FACTOR * deviation, 1.2533 * spread), least)
        empty = cls(centre, scale, one_sided, np.empty(0), (0.0, 1.0, 1.0, 0.0))
        scores, _ = largest(empty.distances(errors))
        if unusual is not None and (~unusual & ~np.isnan(scores)).any():
            scores = np.where(unusual, np.fmin(scores, np.nanmax(scores[~unusual])), scores)
        ordered = np.sort(scores[~np.isnan(scores)])
        return replace(empty, scores=ordered, tail=_tail(ordered, empty.power))

    @property
    def power(self) -> int:
        """The power k of scores whose tail is fitted: squares of normal errors have an exponential one."""
        return 1 if self.one_sided else 2

    def distances(self, errors: Array) -> Array:
        """Return how far errors (n, n_outputs) are from their centre, in units of their scale."""
        away = (errors - self.centre) / self.scale
        return away if self.one_sided else np.abs(away)

    def p_values(self, scores: Array) -> Array:
        """Return the probability of a score at least as large, under the reference: by ranks, and by its tail."""
        n, k = len(self.scores), self.power
        ranked = (1 + n - np.searchsorted(self.scores, scores, side="left")) / (n + 1)
        u, p_u, sigma, xi = self.tail
        with np.errstate(over="ignore"):
            beyond = np.maximum(np.maximum(scores, u) ** k - u**k, 0) / sigma
            decay = np.exp(-beyond) if xi == 0 else (1 + xi * beyond) ** (-1 / xi)
        p = np.where(scores > u, p_u * decay, ranked)
        return np.where(np.isnan(scores), np.nan, p)


def largest(distances: Array) -> tuple[Array, Array]:
    """Return the largest distance (n,) over the outputs, NaN where none is known, and the output it is of."""
    known = np.where(np.isnan(distances), -np.inf, distances)
    which = known.argmax(axis=1)
    scores = np.take_along_axis(known, which[:, None], axis=1)[:, 0]
    return np.where(np.isneginf(scores), np.nan, scores), which


def _tail(ordered: Array, power: int) -> tuple[float, float, float, float]:
    """Return u, p_u, sigma and xi of a generalised Pareto tail, by probability-weighted moments.

    J. R. M. Hosking and J. R. Wallis, Technometrics 29, 1987: with a_0 the mean of the excesses and a_1 the mean of
    those weighted by the share above each, xi = 2 - a_0 / (a_0 - 2 a_1) and sigma = 2 a_0 a_1 / (a_0 - 2 a_1). A tail
    with an end (xi < 0) would make errors beyond it impossible: it becomes an exponential one of the same mean.
    """
    n = len(ordered)
    k = max(2, round(TAIL_SHARE * n))
    if n <= k:
        return (float(ordered[-1]) if n else 0.0, 1.0 / (n + 1), 1.0, 0.0)
    u = max(float(ordered[-k - 1]), 0.0)  # below 0 a square does not grow
    excess = np.maximum(ordered[-k:], u) ** power - u**power
    a_0 = float(excess.mean())
    a_1 = float((excess * (1 - (np.arange(1, k + 1) - 0.35) / k)).mean())
    p_u = (1 + int((ordered > u).sum())) / (n + 1)
    smallest = 1e-9 * max(1.0, u**power)  # all scores alike
    if a_0 <= smallest or a_0 - 2 * a_1 <= 0:
        return u, p_u, max(a_0, smallest), 0.0
    xi = min(2 - a_0 / (a_0 - 2 * a_1), MAX_TAIL_INDEX)
    if xi <= 0:
        return u, p_u, a_0, 0.0
    return u, p_u, a_0 * (1 - xi), xi  # the mean of such a tail is sigma / (1 - xi)


@dataclass(frozen=True, eq=False)
class Anchor:
    """Errors against which a change is measured, output by output."""

    reference: Reference
    ordered: list[Array]  # for each output, the distances of its known errors from the centre, ascending
    mean: Array  # (n_outputs,) of the normal scores of the reference itself: 0 but for ties
    deviation: Array  # and 1
    correlation: Array  # how many times larger the variance of a mean of normal scores is than for independent ones

    @classmethod
    def of(cls, errors: Array, reference: Reference) -> Anchor:
        """Return the anchor of errors (n, n_outputs) in the order of time."""
        distances = reference.distances(errors)
        ordered = [np.sort(d[~np.isnan(d)]) for d in distances.T]
        n = len(ordered)
        z = cls(reference, ordered, np.zeros(n), np.ones(n), np.ones(n)).normal_scores(errors)
        columns = [column[~np.isnan(column)] for column in z.T]
        mean = np.array([column.mean() if len(column) else 0.0 for column in columns])
        deviation = np.array([column.std() if len(column) else 0.0 for column in columns])
        correlation = np.array([_correlation(column) for column in columns])
        return cls(reference, ordered, mean, np.where(deviation > 0, deviation, 1.0), correlation)

    def normal_scores(self, errors: Array) -> Array:
        """Return errors (n, n_outputs) as numbers of mean 0 and deviation 1 if nothing has changed, larger if they are.

        They are quantiles of the normal distribution at the rank of each distance, ties in the middle of theirs.
        """
        distances = self.reference.distances(errors)
        z = np.empty_like(distances)
        for j, (known, d) in enumerate(zip(self.ordered, distances.T, strict=True)):
            below = np.searchsorted(known, d, side="left") + np.searchsorted(known, d, side="right")
            z[:, j] = np.clip(ndtri((below + 1) / (2 * len(known) + 2)), -MAX_NORMAL_SCORE, MAX_NORMAL_SCORE)
        return np.where(np.isnan(distances), np.nan, (z - self.mean) / self.deviation)


def _correlation(z: Array) -> float:
    """Return 1 + 2 Σ_k rho_k, summed while pairs of correlations are positive (Geyer, 1992); at least 1."""
    z = z - z.mean() if len(z) else z
    variance = float(z @ z)
    if variance == 0:
        return 1.0
    lags = min(MAX_LAGS, len(z) // 4)
    rho = np.array([float(z[: len(z) - k] @ z[k:]) / variance for k in range(2 * (lags // 2) + 2)])
    pairs = rho[0::2] + rho[1::2]
    until = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    return max(1.0, 2 * float(pairs[:until].sum()) - 1)
