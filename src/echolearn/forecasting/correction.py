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
MIN_CORRECTION_ROWS = 40  # of the series


@dataclass(frozen=True, eq=False)
class Correction:
    """The corrections of a column, and what they leave of its errors."""

    D: Array  # (M, horizon), intercept last: corrections in units of each output's spread
    ridge: float
    gain: float  # the share of the mean absolute error that they take off
    residuals: Array  # (rows, horizon): rows after a cut are corrected by a readout of those before it; NaN: not known


def fit_correction(X: Array, T: Array, horizon: int, ridges: Array = CORRECTION_RIDGES) -> Correction:
    """Fit the readout of rows X (n, M - 1) to scaled errors T (n, horizon); without ridges there is none.

    An error that is not known yet counts as 0, the value of no correction: near the end of a series the long horizons
    are shrunk somewhat more, and one decomposition serves all of them.
    """
    n, residuals = len(X), T.copy()
    none = Correction(np.zeros((X.shape[1] + 1, horizon)), np.inf, 0.0, residuals)
    if n < MIN_CORRECTION_ROWS or not len(ridges):
        return none
    before, after, agreement, power = 0.0, np.zeros(len(ridges)), np.zeros(len(ridges)), np.zeros(len(ridges))
    guesses = []
    for share, end in zip(BACKTEST_CUTS, (*BACKTEST_CUTS[1:], 1.0), strict=True):
        rows = slice(int(share * n), int(end * n))
        ahead = np.arange(rows.start)[:, None] + np.arange(1, horizon + 1)
        known_before = np.where(ahead >= rows.start, np.nan, T[: rows.start])  # the truth lies before the cut
        P = np.stack([X[rows] @ D[:-1] + D[-1] for D in solve([X[: rows.start]], [known_before], ridges)])
        guesses.append((rows, P))
        known = ~np.isnan(T[rows])
        miss, P = np.where(known, T[rows], 0.0), np.where(known, P, 0.0)
        before += float(np.abs(miss).sum())
        after = after + np.abs(miss - P).sum(axis=(1, 2))
        agreement, power = agreement + (miss * P).sum(axis=(1, 2)), power + (P**2).sum(axis=(1, 2))
    best = int(np.argmin(after))
    gain = float(1 - after[best] / before) if before > 0 else 0.0
    if not gain > MIN_GAIN_SHARE:
        return none
    trust = TRUST_SHARE * float(np.clip(agreement[best] / max(power[best], 1e-300), 0, 1))
    for rows, P in guesses:
        residuals[rows] -= trust * P[best]
    (D,) = solve([X], [T], ridges[best : best + 1])
    return Correction(trust * D, float(ridges[best]), gain, residuals)


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
