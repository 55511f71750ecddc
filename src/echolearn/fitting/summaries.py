"""One target per sequence: units, statistics of their states, and a readout, chosen by exact leave-one-out errors.

Two kinds of units are drawn, detectors of levels and detectors of changes (`reservoir.detectors`): two sets of each, of
`hidden_units` units. The network consists of two of these four sets, of one kind or of both: those whose ridge
regression has the smallest error on sequences that it was not fitted to. Only the training data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from echolearn.display.progress import show_if_verbose
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.parameters import Parameters
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import Columns, LeftOut, solve_dual, temperature
from echolearn.readout.summary import Summary, delayed, thresholds_of
from echolearn.readout.view import ReadoutView, frames_at_once
from echolearn.reservoir import Reservoir
from echolearn.reservoir._detectors import draw_change_detectors, draw_level_detectors, tap_delays
from echolearn.reservoir._reservoir import join_reservoirs
from echolearn.sequences.batch import group_sequences, pack
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.targets import one_hot
from echolearn.states.run import run
from echolearn.validation import Array

NO_DELAY = np.zeros(1, np.int64)  # the delays of units that read the present input only
THRESHOLDS_PER_UNIT = 9
MAX_FULL_THRESHOLD_UNITS = 500  # in networks of more units, each has fewer thresholds
SAMPLED_FRAMES = 16384  # of random training sequences, from which scales and thresholds are taken
MAX_CHOOSING_SEQUENCES = 1500  # that choose the units and the ridge; the readout is then fitted to all
RIDGE_SHARES = np.logspace(-8, 0, 17)  # to choose from, in units of the number of sequences times the number of columns


@dataclass(frozen=True, eq=False)
class Detectors:
    """Units with the summary of their states, and the rows (n, M) of the sequences that choose.

    columns and K (n, n): the rows' standardisation, and the inner products of the standardised rows.
    """

    reservoir: Reservoir
    summary: Summary
    rows: Array
    columns: Columns
    K: Array


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network that may be chosen: two sets of units, and their leave-one-out fit."""

    name: str
    parts: Sequence[Detectors]
    fit: LeftOut

    @property
    def count(self) -> int:
        """The number of columns that vary."""
        return sum(part.columns.count for part in self.parts)


def fit_summary(everything: Dataset, params: Parameters) -> Network:
    """Fit a network to one target per sequence. params: those of a `SeriesClassifier` or `SeriesRegressor`."""
    washout = params["washout"]
    softmax = params.get("readout") == "softmax" and everything.classes is not None  # rows of labels have values
    weights = np.asarray(everything.target_weights(0), np.float64)
    there = np.flatnonzero(weights > 0)
    data, w = everything.subset(there), weights[there]
    rng_units, rng_sample = np.random.default_rng(params["random_state"]).spawn(2)
    choosing = np.sort(rng_sample.permutation(len(w))[:MAX_CHOOSING_SEQUENCES])
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        T = _targets(data)
        few, few_w, few_T = data.subset(choosing), w[choosing], T[choosing]
        sample = _sample(few, rng_sample)
        parts = draw_units(few, few_w, sample, params, rng_units)
        candidates = [_candidate(name, some, few_T, few_w, params["ridge"]) for name, some in parts.items()]
        best = min(candidates, key=lambda candidate: candidate.fit.error)
        errors = ", ".join(f"{one.name} {one.fit.error:.4f}" for one in candidates)
        show_if_verbose(params["verbose"], f"leave-one-out errors: {errors}; chosen: {best.name}")
        reservoir, summary = _joined(best.parts)
        if len(choosing) == len(w):
            U = _unfolded(best)
        else:
            U = _solve_all(reservoir, summary, data, w, washout, share=best.fit.ridge / few_w.sum())
    if softmax:
        U = U * temperature(best.fit.outputs, np.array([int(data.y[i]) for i in choosing]), few_w)
    view = ReadoutView(washout, False, summary=summary)
    return Network(reservoir, Readout(U, softmax, best.fit.ridge * best.count), view)


def _targets(data: Dataset) -> Array:
    """Return the targets (n, n_out): one-hot, or values."""
    if data.classes is None:
        return np.stack([np.asarray(y, np.float64) for y in data.y])
    return one_hot(np.array([int(y) for y in data.y]), data.classes, np.float64)


def _sample(data: Dataset, rng: np.random.Generator) -> list[Array]:
    """Return random sequences of about `SAMPLED_FRAMES` frames in all."""
    order = rng.permutation(len(data.X))
    enough = int(np.searchsorted(np.cumsum(data.lengths[order]), SAMPLED_FRAMES)) + 1
    return [data.X[i] for i in order[:enough]]


def draw_units(
    data: Dataset, w: Array, sample: list[Array], params: Parameters, rng: np.random.Generator
) -> dict[str, list[Detectors]]:
    """Return the sets of units that a network may consist of, by name."""
    N = params["hidden_units"]
    steps = int(np.median(data.lengths))
    delays = tap_delays(steps)
    frames = np.concatenate(sample)[:SAMPLED_FRAMES]
    with_delays = np.concatenate([delayed(x, delays) for x in sample])[:SAMPLED_FRAMES]
    observe = partial(_observed, data=data, w=w, sample=sample, washout=params["washout"])
    levels = [observe(draw_level_detectors(frames, N, rng), NO_DELAY) for _ in range(2)]
    changes = [observe(draw_change_detectors(with_delays, delays, steps, N, rng), delays) for _ in range(2)]
    return {"levels": levels, "changes": changes, "both": [levels[0], changes[0]]}


def _observed(
    reservoir: Reservoir, delays: Array, *, data: Dataset, w: Array, sample: list[Array], washout: int
) -> Detectors:
    """Return units with thresholds from the sample, and the rows of the data."""
    batch = pack([delayed(x, delays) for x in sample], data.dtype)
    H = run(reservoir, batch, keep_F=False).H
    count = THRESHOLDS_PER_UNIT
    if reservoir.N > MAX_FULL_THRESHOLD_UNITS:
        count = max(1, THRESHOLDS_PER_UNIT * MAX_FULL_THRESHOLD_UNITS // reservoir.N)
    summary = Summary(delays, thresholds_of(H[:: 1 + len(H) // SAMPLED_FRAMES], count))
    rows = np.empty((len(data.X), summary.statistics * reservoir.N))
    groups = _groups(reservoir, data)
    for which, some in zip(groups, data.map(_rows_of(reservoir, summary, washout), groups), strict=True):
        rows[which] = some
    columns = Columns.of(rows, w)
    Z = columns.standardize(rows)
    return Detectors(reservoir, summary, rows, columns, Z @ Z.T)


def _groups(reservoir: Reservoir, data: Dataset) -> list[Array]:
    """Return the sequences that one thread works on at once."""
    return list(group_sequences(data.lengths, frames_at_once(max(reservoir.N, reservoir.n_in))))


def _rows_of(reservoir: Reservoir, summary: Summary, washout: int) -> Callable[[Dataset, Array], Array]:
    """Return the function from a dataset and some of its sequences to their rows."""

    def rows(data: Dataset, which: Array) -> Array:
        return summary.rows(reservoir, [data.X[i] for i in which], washout, data.dtype)

    return rows


def _candidate(name: str, parts: Sequence[Detectors], T: Array, w: Array, ridge: object) -> Candidate:
    """Return the leave-one-out fit of a set of units."""
    count = sum(part.columns.count for part in parts)
    K = np.sum([part.K for part in parts], axis=0) / count
    return Candidate(name, parts, solve_dual(K, T, w, _ridges(ridge, count, w)))


def _ridges(ridge: object, count: int, w: Array) -> list[float]:
    """Return the ridges to choose from, divided by the number of columns."""
    if isinstance(ridge, str):
        return list(w.sum() * RIDGE_SHARES)
    given = [float(ridge)] if isinstance(ridge, Real) else cast("Sequence[float]", ridge)
    least = 1e-12 * w.sum()  # a ridge of 0 would divide by zero where there are more columns than sequences
    return [max(float(one) / count, least) for one in given]


def _unfolded(best: Candidate) -> Array:
    """Return the readout U (M + 1, n_out) of the joined units, from the dual solution."""
    pieces, intercept = [], best.fit.mean
    for part in best.parts:
        V = part.columns.standardize(part.rows).T @ best.fit.C / best.count
        U = part.columns.unfold(V, np.zeros_like(best.fit.mean))
        pieces.append(U[:-1].reshape(part.summary.statistics, part.reservoir.N, -1))
        intercept = intercept + U[-1]
    return np.vstack([np.concatenate(pieces, axis=1).reshape(-1, len(intercept)), intercept])


def _joined(parts: Sequence[Detectors]) -> tuple[Reservoir, Summary]:
    """Return one reservoir of all units, and its summary."""
    delays = np.unique(np.concatenate([part.summary.delays for part in parts]))
    widened = []
    for part in parts:
        own, r = part.summary.delays, part.reservoir
        W = np.zeros((len(delays), r.n_in // len(own), r.N))
        W[np.searchsorted(delays, own)] = r.W.reshape(len(own), -1, r.N)
        widened.append(replace(r, W=W.reshape(-1, r.N), backward=None))
    backward = [np.zeros(r.N, bool) if r.backward is None else r.backward for r in (part.reservoir for part in parts)]
    thresholds = np.hstack([part.summary.thresholds for part in parts])
    reservoir = replace(join_reservoirs(widened), backward=np.concatenate(backward))
    return reservoir, Summary(delays, thresholds)


@dataclass(eq=False)
class _Sums:
    """Weighted sums over sequences of rows with a last column of ones, and of their products with targets."""

    G: Array
    Q: Array

    def __iadd__(self, other: _Sums) -> _Sums:
        self.G += other.G
        self.Q += other.Q
        return self


def _solve_all(reservoir: Reservoir, summary: Summary, data: Dataset, w: Array, washout: int, *, share: float) -> Array:
    """Return the readout U (M + 1, n_out) of all sequences; share: the ridge per sequence and column."""
    T, rows_of, groups = _targets(data), _rows_of(reservoir, summary, washout), _groups(reservoir, data)
    first = groups[:: max(1, len(groups) // 4)]
    columns = Columns.of(
        np.concatenate(list(data.map(rows_of, first))), w[np.concatenate(first)]
    )  # a scale of the columns; what it leaves of their means goes to the intercept

    def sums_of(data: Dataset, which: Array) -> _Sums:
        Z = np.hstack([columns.standardize(rows_of(data, which)), np.ones((len(which), 1))])
        return _Sums((Z * w[which, None]).T @ Z, (Z * w[which, None]).T @ T[which])

    sums = data.sum(sums_of, groups)
    n, total, of_targets = sums.G[-1, -1], sums.G[-1, :-1], sums.Q[-1]
    G = sums.G[:-1, :-1] - np.outer(total, total) / n
    G[np.diag_indices_from(G)] += share * n * columns.count
    V = cho_solve(cho_factor(G, lower=True, overwrite_a=True), sums.Q[:-1] - np.outer(total, of_targets) / n)
    return columns.unfold(V, of_targets / n - (total / n) @ V)
