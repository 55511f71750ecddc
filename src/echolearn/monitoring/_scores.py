"""Measures of how unusual an error is among earlier ones: scores, and the probability of larger errors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from echolearn.validation import Array

TAIL_SHARE = 0.1  # the share of largest scores to which the tail is fitted
TAIL_INDICES = np.arange(-0.275, 1.0, 0.05)  # of the tails that are weighed: from 1 on a tail has no mean
MAX_LAGS = 100  # up to which correlation in time is added up
NORMAL_MAD_FACTOR = 1.4826  # the standard deviation of normal numbers over their median absolute deviation
MAX_NORMAL_SCORE = 3.0  # normal scores are cut off here, so that a single error is no drift


def centre_and_scale(errors: Array) -> tuple[Array, Array]:
    """Return the median of errors (n, n_outputs), and their median absolute deviation as a standard deviation."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # an output that is never known
        centre = np.nan_to_num(np.nanmedian(errors, axis=0))
        away = np.abs(errors - centre)
        deviation = np.nan_to_num(np.nanmedian(away, axis=0))
        spread = np.nan_to_num(np.nanmean(away, axis=0))
    least = 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny / 1e-12)
    return centre, np.maximum(np.where(deviation > 0, NORMAL_MAD_FACTOR * deviation, 1.2533 * spread), least)


def carried_over(before: Array, since: Array) -> Array:
    """Return errors from before a change, moved to the centre of those since, and as wide as the wider of both."""
    (centre, scale), (new_centre, new_scale) = centre_and_scale(before), centre_and_scale(since)
    return np.asarray(new_centre + (before - centre) * np.maximum(new_scale / scale, 1.0))


@dataclass(frozen=True, eq=False)
class Reference:
    """Errors by which later ones are judged."""

    centre: Array  # (n_outputs,): the median of the errors of each output
    scale: Array  # (n_outputs,): their median absolute deviation as a standard deviation
    one_sided: bool  # whether only large errors are unusual, as for losses, and not those far below the centre too
    scores: Array  # of the reference itself, ascending
    tail: Tail

    @classmethod
    def of(cls, errors: Array, *, one_sided: bool, unusual: Array | None = None, level: float = 0.0) -> Reference:
        """Return the reference of errors (n, n_outputs) in the order of time; NaN stands for those not known.

        unusual: which errors (n,) were below the level. As many as chance explains count as larger than all others, by
        an amount that is not known, because a tail without them would be too short; the rest are faults, and left out.
        """
        empty = cls(*centre_and_scale(errors), one_sided, np.empty(0), Tail.of(np.empty(0), 0, 1))
        scores, _ = largest(empty.distances(errors))
        by_chance = 0
        if unusual is not None and (~unusual & ~np.isnan(scores)).any():
            top, expected = np.nanmax(scores[~unusual]), level * len(scores)
            above = np.flatnonzero(unusual & (scores > top))
            by_chance = min(len(above), round(expected + 2 * expected**0.5))
            scores[above] = top
            scores[above[by_chance:]] = np.nan
        known = scores[~np.isnan(scores)]
        # squares of normal errors have an exponential tail
        return replace(empty, scores=np.sort(known), tail=Tail.of(known, by_chance, 1 if one_sided else 2))

    def distances(self, errors: Array) -> Array:
        """Return how far errors (n, n_outputs) are from their centre, in units of their scale."""
        away = (errors - self.centre) / self.scale
        return away if self.one_sided else np.abs(away)

    def p_values(self, scores: Array) -> Array:
        """Return the probability of a score at least as large, under the reference: by ranks, and by its tail."""
        n = len(self.scores)
        ranked = (1 + n - np.searchsorted(self.scores, scores, side="left")) / (n + 1)
        p = np.where(scores > self.tail.start, self.tail.p_values(scores), ranked)
        return np.where(np.isnan(scores), np.nan, p)


@dataclass(frozen=True, eq=False)
class Tail:
    """The probability that a further score is larger than one above `start`, by the scores of a reference.

    Excesses x of scores, or of their squares, have a generalised Pareto distribution: L = log(1 + bx) is exponential
    with mean xi. Of r of them x is known, and of m it is known only that they are at least as large as these, which
    gives the likelihood (b / xi)^r exp(-Σ_r L - S / xi), where S is the sum of all r + m values of L. With the prior
    1 / xi, the integral over xi is proportional to the weight (b / S)^r exp(-Σ_r L) of b, and a further excess is
    larger than x with probability (1 + log(1 + bx) / S)^-r: for given b exactly as often as it says, however small r
    is. The tails of several b are weighed against each other. Where large scores come in groups, so that the variance
    of their number is c times that of independent ones, they tell as much as r / c independent scores.
    """

    start: float
    share: float  # the probability of a score above the start
    power: int  # of the scores
    shapes: Array  # the values of b
    weights: Array  # and how likely each is
    sums: Array  # S / c for each
    count: float  # r / c

    @classmethod
    def of(cls, scores: Array, censored: int, power: int) -> Tail:
        """Return the tail of scores (n,) in the order of time; censored: how many of the largest are not known."""
        ordered, n = np.sort(scores), len(scores)
        k = max(2, round(TAIL_SHARE * n))
        if n <= k:
            return cls(float(ordered[-1]) if n else 0.0, 1 / (n + 1), power, np.ones(1), np.ones(1), np.ones(1), 1.0)
        start = max(float(ordered[-k - 1]), 0.0)  # below 0 a square does not grow
        smallest = 1e-9 * max(1.0, start**power)  # all scores alike
        x = np.maximum(np.maximum(ordered[-k:], start) ** power - start**power, smallest)
        b = (2.0**TAIL_INDICES - 1) / float(np.median(x))  # the median of a tail with index xi is (2^xi - 1) / b
        b = b[1 + b * x[-1] > 0]
        L = np.log1p(b[:, None] * x)
        r, S = k - min(censored, k - 1), L.sum(axis=1)
        c = _correlation((scores > start).astype(np.float64))
        logarithm = (r * np.log(b / S) - L[:, :r].sum(axis=1)) / c
        weights = np.exp(logarithm - logarithm.max())
        share = (1 + int((ordered > start).sum())) / (n + 1)
        return cls(start, share, power, b, weights / weights.sum(), S / c, r / c)

    def p_values(self, scores: Array) -> Array:
        """Return the probability of a score at least as large, for scores above the start."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            x = np.maximum(scores, self.start) ** self.power - self.start**self.power
            L = np.log(np.maximum(1 + self.shapes * x[:, None], 0.0))  # with b < 0 a tail has an end
            # a sum, not a product of matrices, whose bits depend on how many scores there are
            return np.asarray(self.share * ((1 + L / self.sums) ** -self.count * self.weights).sum(axis=1))


def largest(distances: Array) -> tuple[Array, Array]:
    """Return the largest distance (n,) over the outputs, NaN where none is known, and the output it is of."""
    known = np.where(np.isnan(distances), -np.inf, distances)
    which = known.argmax(axis=1)
    scores = np.take_along_axis(known, which[:, None], axis=1)[:, 0]
    return np.where(np.isneginf(scores), np.nan, scores), which


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
        """Return errors (n, n_outputs) as numbers of mean 0 and deviation 1 if nothing has changed: quantiles of the
        normal distribution at the rank of each distance, ties in the middle of theirs."""
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
