"""The readout that corrects forecasts: one output per horizon, its ridge and its trust chosen by rolling origins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.validation import Array

CORRECTION_RIDGES = 10.0 ** np.arange(-4.0, 3.0)  # in units of the mean squared state times the number of rows
BACKTEST_CUTS = (0.5, 0.75)  # shares of the rows after which the readouts of the backtest are fitted
MIN_GAIN_SHARE = 0.01  # of the mean absolute error, below which the correction is left out
TRUST_SHARE = 0.6  # of the trust that the backtest suggests: it chose the ridge, which flatters it
MIN_CORRECTION_ROWS = 20  # of all series together


@dataclass(frozen=True, eq=False)
class Correction:
    """D (M, outputs), intercept last: corrections in units of each output's spread; the ridge, and the gain found.

    residuals: of every series, what is left of the errors (rows, outputs) when the rows after each cut are corrected by
    a readout of the rows before it; NaN where the truth is not known.
    """

    D: Array
    ridge: float
    trust: float
    gain: float
    residuals: list[Array]


def fit_correction(
    X: Sequence[Array], T: Sequence[Array], horizon: int, ridges: Array = CORRECTION_RIDGES
) -> Correction:
    """Fit the readout of rows X (n, M - 1) to scaled errors T (n, outputs), both per series.

    Outputs are ordered by columns, then by horizons 1 ... horizon.

    An error that is not known yet counts as 0, the value of no correction: near the end of a series the long horizons
    are shrunk somewhat more, and one decomposition serves all of them.
    """
    residuals = [t.copy() for t in T]
    M, rows = X[0].shape[1], sum(map(len, X))
    none = Correction(np.zeros((M + 1, T[0].shape[1])), np.inf, 0.0, 0.0, residuals)
    if rows < MIN_CORRECTION_ROWS:
        return none
    before = after = agreement = power = np.zeros(len(ridges))
    guesses: list[list[tuple[slice, Array]]] = [[] for _ in X]
    for share, end in zip(BACKTEST_CUTS, (*BACKTEST_CUTS[1:], 1.0), strict=True):
        cuts = [(int(share * len(x)), int(end * len(x))) for x in X]
        solutions = solve([x[:c] for x, (c, _) in zip(X, cuts, strict=True)], _known_before(T, cuts, horizon), ridges)
        for x, t, (c, e), guessed in zip(X, T, cuts, guesses, strict=True):
            known = ~np.isnan(t[c:e])
            P = np.stack([x[c:e] @ D[:-1] + D[-1] for D in solutions])
            guessed.append((slice(c, e), P))
            miss, P = np.where(known, t[c:e], 0.0), np.where(known, P, 0.0)
            before = before + np.abs(miss).sum()
            after = after + np.abs(miss - P).sum(axis=(1, 2))
            agreement, power = agreement + (miss * P).sum(axis=(1, 2)), power + (P**2).sum(axis=(1, 2))
    best = int(np.argmin(after))
    gain = float(1 - after[best] / before[best]) if before[best] > 0 else 0.0
    trust = TRUST_SHARE * float(np.clip(agreement[best] / max(power[best], 1e-300), 0, 1))
    if not gain > MIN_GAIN_SHARE:
        return none
    for rest, guessed in zip(residuals, guesses, strict=True):
        for span, P in guessed:
            rest[span] -= trust * P[best]
    (D,) = solve(X, T, ridges[best : best + 1])
    return Correction(trust * D, float(ridges[best]), trust, gain, residuals)


def _known_before(T: Sequence[Array], cuts: list[tuple[int, int]], horizon: int) -> list[Array]:
    """Return targets of the rows before each cut, without those whose truth lies after it."""
    ahead = np.arange(T[0].shape[1]) % horizon + 1
    return [
        np.where(np.arange(cut)[:, None] + ahead >= cut, np.nan, t[:cut]) for t, (cut, _) in zip(T, cuts, strict=True)
    ]


def solve(X: Sequence[Array], T: Sequence[Array], ridges: Array) -> list[Array]:
    """Return one ridge solution (M, outputs) per ridge, the intercept last and not penalised."""
    A = np.concatenate(X)
    B = np.nan_to_num(np.concatenate(T))
    mean, level = A.mean(axis=0), B.mean(axis=0)
    values, Q = np.linalg.eigh((A - mean).T @ (A - mean))
    projected = Q.T @ ((A - mean).T @ (B - level))
    unit = max(float(values.mean()), 1e-300)
    slopes = [Q @ (projected / (np.maximum(values, 0) + ridge * unit)[:, None]) for ridge in ridges]
    return [np.vstack([D, level - mean @ D]) for D in slopes]
