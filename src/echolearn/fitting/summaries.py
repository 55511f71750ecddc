"""One target per sequence: four sets of units, a ridge regression for each, and the mean of their outputs.

Detectors of levels and detectors of changes (`reservoir._detectors`) read the series; further sets of both kinds read
its first differences. Every set has a readout of its own, of the summary of its states. The outputs of the network are
the mean of the four, in which a set counts the more, the smaller its error is on sequences that it was not fitted to.
Nothing is chosen but the ridges. Only the training data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from echolearn.display.progress import show_if_verbose
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.parameters import Parameters
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import Columns, LeftOut, solve_dual, temperature
from echolearn.readout.summary import Summary, delayed, differences, thresholds_of
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
MAX_FULL_THRESHOLD_UNITS = 500  # in sets of more units, each has fewer thresholds
SAMPLED_FRAMES = 16384  # of random training sequences, which the units run over before all others
SCALING_FRAMES = 4096  # of these, evenly spread, that give scales and thresholds
MAX_CHOOSING_SEQUENCES = 1500  # that choose ridges and shares; the readouts are then fitted to all
RIDGE_SHARES = np.logspace(-8, 0, 17)  # to choose from, in units of the number of sequences times the number of columns
ERROR_POWER = 8  # a set of units counts in proportion to its error left out to the power of -8


@dataclass(frozen=True, eq=False)
class Detectors:
    """A set of units with the summary of its states, and the rows (n, M) of the sequences that choose.

    of_differences: whether the units read the first differences. columns and K (n, n): the rows' standardisation, and
    the mean over columns of the products of standardised rows.
    """

    of_differences: bool
    reservoir: Reservoir
    summary: Summary
    rows: Array
    columns: Columns
    K: Array


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
        sets = draw_units(few, few_w, _sample(few, rng_sample), params, rng_units)
        fits = [solve_dual(one.K, few_T, few_w, _ridges(params["ridge"], one.columns.count, few_w)) for one in sets]
        shares = shares_of([fit.error for fit in fits])
        if len(choosing) == len(w):
            readouts = [_unfolded(one, fit) for one, fit in zip(sets, fits, strict=True)]
        else:
            readouts = [
                _solve_all(one, data, w, washout, share=fit.ridge / few_w.sum())
                for one, fit in zip(sets, fits, strict=True)
            ]
        reservoir, summary = _joined(sets, shares)
        U = _averaged(readouts, shares, summary.statistics)
    errors = ", ".join(f"{fit.error:.4f}" for fit in fits)
    show_if_verbose(params["verbose"], f"{summary}; leave-one-out errors {errors}")
    if softmax:
        outputs = np.einsum("k,kno->no", shares, [fit.outputs for fit in fits])
        U = U * temperature(outputs, np.array([int(data.y[i]) for i in choosing]), few_w)
    ridge = float(shares @ [fit.ridge * one.columns.count for one, fit in zip(sets, fits, strict=True)])
    return Network(reservoir, Readout(U, softmax, ridge), ReadoutView(washout, False, summary=summary))


def shares_of(errors: Sequence[float]) -> Array:
    """Return how much each set of units counts, given its mean squared error on sequences left out."""
    least = np.maximum(errors, np.finfo(float).tiny)
    powers = (least / least.min()) ** -ERROR_POWER
    return np.asarray(powers / powers.sum())


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
) -> list[Detectors]:
    """Return the sets of units, in the order of `modelfile.schema.SETS_OF_UNITS`."""
    N, steps = params["hidden_units"], int(np.median(data.lengths))
    delays, found = tap_delays(steps), []
    for of_differences in (False, True):
        seen = [differences(x) for x in sample] if of_differences else sample
        with_delays = _spread(np.concatenate([delayed(x, delays) for x in seen]))
        levels = draw_level_detectors(_spread(np.concatenate(seen)), N, rng)
        changes = draw_change_detectors(with_delays, delays, steps, N, rng)
        for reservoir, own in ((levels, NO_DELAY), (changes, delays)):
            summary = Summary(own, _thresholds(reservoir, [delayed(x, own) for x in seen], data.dtype))
            rows = np.empty((len(data.X), summary.statistics * N))
            groups = _groups(reservoir, data)
            rows_of = _rows_of(reservoir, summary, params["washout"], of_differences)
            for which, some in zip(groups, data.map(rows_of, groups), strict=True):
                rows[which] = some
            columns = Columns.of(rows, w)
            Z = columns.standardize(rows)
            found.append(Detectors(of_differences, reservoir, summary, rows, columns, Z @ Z.T / columns.count))
    return found


def _thresholds(reservoir: Reservoir, inputs: list[Array], dtype: np.dtype) -> Array:
    """Return the thresholds (Q, N) of units, from their states for some inputs."""
    H = run(reservoir, pack(inputs, dtype), keep_F=False).H
    count = THRESHOLDS_PER_UNIT
    if reservoir.N > MAX_FULL_THRESHOLD_UNITS:
        count = max(1, THRESHOLDS_PER_UNIT * MAX_FULL_THRESHOLD_UNITS // reservoir.N)
    return thresholds_of(_spread(H), count)


def _spread(frames: Array) -> Array:
    """Return at most `SCALING_FRAMES` of frames, evenly spread."""
    return frames[:: 1 + len(frames) // SCALING_FRAMES]


def _groups(reservoir: Reservoir, data: Dataset) -> list[Array]:
    """Return the sequences that one thread works on at once."""
    return list(group_sequences(data.lengths, frames_at_once(max(reservoir.N, reservoir.n_in))))


def _rows_of(
    reservoir: Reservoir, summary: Summary, washout: int, of_differences: bool
) -> Callable[[Dataset, Array], Array]:
    """Return the function from a dataset and some of its sequences to the rows of a set of units."""

    def rows(data: Dataset, which: Array) -> Array:
        seen = [differences(data.X[i]) if of_differences else data.X[i] for i in which]
        return summary.rows(reservoir, [delayed(x, summary.delays) for x in seen], washout, data.dtype)

    return rows


def _ridges(ridge: object, count: int, w: Array) -> list[float]:
    """Return the ridges to choose from, divided by the number of columns."""
    if isinstance(ridge, str):
        return list(w.sum() * RIDGE_SHARES)
    given = [float(ridge)] if isinstance(ridge, Real) else cast("Sequence[float]", ridge)
    least = 1e-12 * w.sum()  # a ridge of 0 would divide by zero where there are more columns than sequences
    return [max(float(one) / count, least) for one in given]


def _unfolded(one: Detectors, fit: LeftOut) -> Array:
    """Return the readout U (M + 1, n_out) of a set of units, from the dual solution."""
    return one.columns.unfold(one.columns.standardize(one.rows).T @ fit.C / one.columns.count, fit.mean)


def _averaged(readouts: Sequence[Array], shares: Array, statistics: int) -> Array:
    """Return the readout (M + 1, n_out) of all units whose outputs are the weighted mean of those of the sets."""
    weighted = [share * U for share, U in zip(shares, readouts, strict=True)]
    n_out = weighted[0].shape[1]
    rows = np.concatenate([U[:-1].reshape(statistics, -1, n_out) for U in weighted], axis=1)
    return np.vstack([rows.reshape(-1, n_out), np.sum([U[-1] for U in weighted], axis=0)])


def _joined(sets: Sequence[Detectors], shares: Array) -> tuple[Reservoir, Summary]:
    """Return one reservoir of all units, and its summary."""
    delays = np.unique(np.concatenate([one.summary.delays for one in sets]))
    widened, backward = [], []
    for one in sets:
        own, r = one.summary.delays, one.reservoir
        n = r.n_in // len(own)
        W = np.zeros((len(delays), 2, n, r.N))  # of the series, and of its differences
        W[np.searchsorted(delays, own), int(one.of_differences)] = r.W.reshape(len(own), n, r.N)
        widened.append(replace(r, W=W.reshape(-1, r.N), backward=None))
        backward.append(np.zeros(r.N, bool) if r.backward is None else r.backward)
    reservoir = replace(join_reservoirs(widened), backward=np.concatenate(backward))
    return reservoir, Summary(delays, np.hstack([one.summary.thresholds for one in sets]), shares)


@dataclass(eq=False)
class _Sums:
    """Weighted sums over sequences of rows with a last column of ones, and of their products with targets."""

    G: Array
    Q: Array

    def __iadd__(self, other: _Sums) -> _Sums:
        self.G += other.G
        self.Q += other.Q
        return self


def _solve_all(one: Detectors, data: Dataset, w: Array, washout: int, *, share: float) -> Array:
    """Return the readout (M + 1, n_out) of a set for all sequences; share: the ridge per sequence and column."""
    T, groups = _targets(data), _groups(one.reservoir, data)
    rows_of, columns = _rows_of(one.reservoir, one.summary, washout, one.of_differences), one.columns

    def sums_of(data: Dataset, which: Array) -> _Sums:
        Z = np.hstack([columns.standardize(rows_of(data, which)), np.ones((len(which), 1))])
        return _Sums((Z * w[which, None]).T @ Z, (Z * w[which, None]).T @ T[which])

    sums = data.sum(sums_of, groups)
    n, total, of_targets = sums.G[-1, -1], sums.G[-1, :-1], sums.Q[-1]  # what is left of means goes to the intercept
    G = sums.G[:-1, :-1] - np.outer(total, total) / n
    G[np.diag_indices_from(G)] += share * n * columns.count
    V = cho_solve(cho_factor(G, lower=True, overwrite_a=True), sums.Q[:-1] - np.outer(total, of_targets) / n)
    return columns.unfold(V, of_targets / n - (total / n) @ V)
