"""One target per sequence: four sets of units, a ridge regression for each, and the mean of their outputs.

Detectors of levels and detectors of changes (`reservoir._detectors`) read the series; further sets of both kinds read
its first differences. Every set has a readout of its own, of the summary of its states. The outputs of the network are
the mean of the four, weighted so that its error is small on sequences that the readouts were not fitted to. Nothing is
chosen but these weights and the ridges. Only the training data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from echolearn.display.progress import show_if_verbose
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.advice.baselines import Outcome
from echolearn.fitting.parameters import Parameters
from echolearn.modelfile.schema import tap_delays
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import Columns, LeftOut, calibration, has_others, solve_dual
from echolearn.readout.summary import Summary, both, delayed, differences, rows_of, thresholds_of
from echolearn.readout.view import ReadoutView
from echolearn.reservoir import Reservoir
from echolearn.reservoir._detectors import draw_change_detectors, draw_level_detectors
from echolearn.reservoir._reservoir import join_reservoirs
from echolearn.sequences.batch import pack
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.targets import one_hot
from echolearn.states.run import run
from echolearn.validation import Array

NO_DELAY = np.zeros(1, np.int64)  # the delays of units that read the present input only
THRESHOLDS_PER_UNIT = 9
MAX_FULL_THRESHOLD_UNITS = 750  # in sets of more units, each has fewer thresholds
MAX_UNITS, MIN_UNITS = 750, 250  # of a set, where hidden_units="auto": as many as possible for small data,
MAX_STEPS_OF_MOST_UNITS, MAX_SERIES_OF_MOST_UNITS = 25_000, 50  # and fewer in proportion for larger data
SAMPLED_FRAMES = 8192  # of random training sequences, which the units run over before all others
SCALING_FRAMES = 2048  # of these, evenly spread, that give scales and thresholds
MAX_CHOOSING_SEQUENCES = 1000  # that choose ridges and shares; the readouts are then fitted to all
BLOCKS = 10  # of sequences that follow each other, each left out as a whole where probabilities are calibrated
MAX_ROWS_PER_SUM = 512  # sequences whose rows exist at once while sums are added
# To choose from, in units of the number of sequences times the number of columns. Smaller ones hardly change the errors
# of sequences left out, but carry rounding errors of states into the outputs
RIDGE_SHARES = np.logspace(-5, 0, 11)
PREFIX_LENGTHS = 20  # for which early answers have readouts
SHARE_RIDGE = 0.2  # that pulls the shares of the sets to equal ones, in units of their smallest squared error left out


@dataclass(frozen=True, eq=False)
class Detectors:
    """A set of units with the summary of its states; seen: from a series to what it reads, such as `differences`."""

    seen: Callable[[Array], Array]
    reservoir: Reservoir
    summary: Summary

    def rows(self, data: Dataset, washout: int) -> Array:
        """Return the rows (n, M) of sequences."""
        return rows_of(data, self.summary, self.reservoir, washout, self.seen)


@dataclass(frozen=True, eq=False)
class Choosing:
    """The sequences that choose ridges and shares, and calibrate probabilities: their places `which` (n,).

    counted (n,): whether its errors count when a sequence is left out; those of the only one of its class do not, since
    nobody else has seen that class. blocks: places among `which` of sequences that are left out together.
    """

    which: Array
    counted: Array
    blocks: Sequence[Array]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The readouts of sets of units as one: U (M + 1, n_out), with the error, share and ridge of each set.

    outputs (n, n_out): what each series that chose is given by the readouts of all others; where outputs are logits, by
    those of all other blocks of series.
    """

    U: Array
    errors: Sequence[float]
    shares: Array
    ridges: Sequence[float]
    outputs: Array


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Readouts of series of which only the first steps are known: one U (M + 1, n_out) for each of lengths (K,).

    outputs (K, n, n_out): of n training series, each left out. steps (n,): their lengths; labels (n,); w (n,).
    """

    lengths: Array
    readouts: Sequence[Array]
    outputs: Array
    steps: Array
    labels: Array
    w: Array


def fit_summary(everything: Dataset, params: Parameters) -> tuple[Network, Outcome]:
    """Fit a network to one target per sequence; return it with the outcome on sequences left out.

    params: those of a `SeriesClassifier` or `SeriesRegressor`.
    """
    rng_units, rng_sample = np.random.default_rng(params["random_state"]).spawn(2)
    data, w, choosing = _known(everything, rng_sample)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        few = data.subset(choosing)
        N = units_for(data.lengths) if params["hidden_units"] == "auto" else params["hidden_units"]
        sets = draw_units(few, _sample(few, rng_sample), N, rng_units)
        fitted = _fit_readouts(sets, data, w, choosing, params)
    reservoir, summary = _joined(sets, fitted.shares)
    errors = ", ".join(f"{error:.4f}" for error in fitted.errors)
    show_if_verbose(params["verbose"], f"{summary}; leave-one-out errors {errors}")
    view = ReadoutView(params["washout"], False, summary=summary)
    readout = Readout(fitted.U, _softmax(data, params), float(fitted.shares @ fitted.ridges))
    return Network(reservoir, readout, view), left_out(few, w[choosing], fitted.outputs)


def left_out(few: Dataset, w: Array, outputs: Array) -> Outcome:
    """Return the outcome on sequences whose outputs (n, n_out) are those of readouts that have not seen them."""
    targets = [np.atleast_1d(y) if few.classes is not None else np.asarray(y)[None] for y in few.y]
    return Outcome([np.empty((1, 0))] * len(w), targets, list(outputs[:, None]), list(w[:, None]), False)


def units_for(lengths: Array) -> int:
    """Return how many units a set has for series of these lengths, if nobody says it.

    Answers depend less on the seed with more units, most of all where series are few; there they cost little time.
    """
    few = min(MAX_STEPS_OF_MOST_UNITS / lengths.sum(), MAX_SERIES_OF_MOST_UNITS / len(lengths))
    return max(MIN_UNITS, min(MAX_UNITS, int(MAX_UNITS * few)))


def fit_prefixes(network: Network, everything: Dataset, params: Parameters) -> Prefixes:
    """Fit further readouts of the units of a network of whole series to prefixes; a shorter series counts as it is."""
    data, w, choosing = _known(everything, np.random.default_rng(params["random_state"]).spawn(2)[1])
    longest, sets = int(data.lengths.max()), _sets_of(network)
    lengths = np.unique(np.ceil(np.linspace(params["washout"], longest, PREFIX_LENGTHS + 1)[1:]).astype(int))
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        cut = (replace(data, X=[x[:steps] for x in data.X]) for steps in lengths)
        fitted = [_fit_readouts(sets, prefixes, w, choosing, params) for prefixes in cut]
    few = data.subset(choosing)
    outputs, labels = np.stack([one.outputs for one in fitted]), np.array([int(y) for y in few.y])
    return Prefixes(lengths, [one.U for one in fitted], outputs, few.lengths, labels, w[choosing])


def _known(everything: Dataset, rng: np.random.Generator) -> tuple[Dataset, Array, Array]:
    """Return the sequences that have a target, what each counts, and which of them choose ridges and shares."""
    weights = np.asarray(everything.target_weights(0), np.float64)
    there = np.flatnonzero(weights > 0)
    return everything.subset(there), weights[there], np.sort(rng.permutation(len(there))[:MAX_CHOOSING_SEQUENCES])


def _softmax(data: Dataset, params: Parameters) -> bool:
    """Return whether outputs are logits; rows of labels have values."""
    return params.get("readout") == "softmax" and data.classes is not None


def _fit_readouts(sets: Sequence[Detectors], data: Dataset, w: Array, choosing: Array, params: Parameters) -> Fitted:
    """Fit the readout of each set of units, and average them."""
    softmax, few_w = _softmax(data, params), w[choosing]
    labels = None if data.classes is None else np.array([int(data.y[i]) for i in choosing])
    counted = np.ones(len(choosing), bool) if labels is None else has_others(labels)
    chosen = Choosing(choosing, counted, blocks_of(labels) if softmax and labels is not None else ())
    fits, readouts, ridges = zip(*(_solve(one, data, w, chosen, params) for one in sets), strict=True)
    shares = shares_of(np.stack([fit.outputs for fit in fits]) - _targets(data)[choosing], few_w * counted)
    outputs = np.einsum("k,kno->no", shares, np.stack([fit.block_outputs for fit in fits]))
    U = _averaged(readouts, shares, sets[0].summary.statistics)
    if softmax and labels is not None:
        A, b = calibration(outputs, labels, few_w)
        U, outputs = U @ A, outputs @ A + b
        U[-1] += b
    return Fitted(U, [fit.error for fit in fits], shares, ridges, outputs)


def blocks_of(labels: Array) -> list[Array]:
    """Return the places of series that are left out together: of each class, a tenth that follow each other.

    Series of one person, machine or session resemble each other, and often follow each other. Where only one is left
    out, the readout has seen its like, and its answers look more certain than those for a new person are.
    """
    block, first = np.empty(len(labels), int), 0
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        count = min(BLOCKS, len(places))
        block[places] = (first + np.arange(len(places)) * count // len(places)) % BLOCKS
        first += count
    return [np.flatnonzero(block == k) for k in np.unique(block)]


def _solve(
    one: Detectors, data: Dataset, w: Array, chosen: Choosing, params: Parameters
) -> tuple[LeftOut, Array, float]:
    """Return the fit of a set of units to the sequences that choose, its readout (M + 1, n_out), and its ridge."""
    choosing = chosen.which
    T, few_w = _targets(data), w[choosing]
    at_once = len(w) <= one.summary.statistics * one.reservoir.N  # products of rows are smaller than those of columns
    rows = one.rows(data if at_once else data.subset(choosing), params["washout"])
    few = choosing if len(choosing) < len(rows) else slice(None)
    columns = Columns.of(rows[few], few_w)
    Z = columns.standardize(rows)
    some, ridges = Z[few], _ridges(params["ridge"], columns.count, few_w)
    K = some @ some.T / columns.count
    fit = solve_dual(K, T[choosing], few_w, ridges, counted=chosen.counted, blocks=chosen.blocks)
    ridge = fit.ridge * columns.count
    if len(choosing) == len(w):
        U = columns.unfold(Z.T @ fit.C / columns.count, fit.mean)
    elif at_once:
        U = columns.unfold(*_solve_rows(Z, T, w, ridge * w.sum() / few_w.sum()))
    else:
        del rows, Z, some
        solved = _solve_sums(one, columns, data, w, washout=params["washout"], ridge=ridge * w.sum() / few_w.sum())
        U = columns.unfold(*solved)
    return fit, U, ridge


def shares_of(residuals: Array, w: Array) -> Array:
    """Return how much each set of units counts, given what it misses (K, n, n_out) on sequences left out.

    The shares s add up to 1, and the mean of the outputs has the smallest squared error beside a ridge: s'Gs is least,
    where s >= 0 and G = L L'. Without the sum, v'Gv / 2 - sum(v) is least at a multiple of s, and so is |L'v - L^-1 1|.
    """
    K = len(residuals)
    R = (np.sqrt(w)[:, None] * residuals).reshape(K, -1)
    G = R @ R.T
    G /= np.trace(G) / K or 1.0
    L = np.linalg.cholesky(G + (SHARE_RIDGE * G.diagonal().min() + 1e-12) * np.eye(K))
    v = nnls(L.T, np.linalg.solve(L, np.ones(K)))[0]
    return np.asarray(v / v.sum())


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


def draw_units(data: Dataset, sample: list[Array], N: int, rng: np.random.Generator) -> list[Detectors]:
    """Return the sets of units, in the order of `modelfile.schema.SETS_OF_UNITS`."""
    steps = int(np.median(data.lengths))
    delays, found = tap_delays(steps), []
    for read in (np.asarray, differences):
        seen = [read(x) for x in sample]
        with_delays = [delayed(x, delays) for x in seen]
        levels = draw_level_detectors(_spread(np.concatenate(seen)), N, rng)
        changes = draw_change_detectors(_spread(np.concatenate(with_delays)), delays, steps, N, rng)
        for reservoir, own, inputs in ((levels, NO_DELAY, seen), (changes, delays, with_delays)):
            thresholds = _thresholds(reservoir, inputs, data.dtype)
            found.append(Detectors(read, reservoir, Summary(own, thresholds)))
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


def _ridges(ridge: object, count: int, w: Array) -> list[float]:
    """Return the ridges to choose from, divided by the number of columns."""
    if isinstance(ridge, str):
        return list(w.sum() * RIDGE_SHARES)
    given = [float(ridge)] if isinstance(ridge, Real) else cast("Sequence[float]", ridge)
    least = 1e-12 * w.sum()  # a ridge of 0 would divide by zero where there are more columns than sequences
    return [max(float(one) / count, least) for one in given]


def _averaged(readouts: Sequence[Array], shares: Array, statistics: int) -> Array:
    """Return the readout (M + 1, n_out) of all units whose outputs are the weighted mean of those of the sets."""
    weighted = [share * U for share, U in zip(shares, readouts, strict=True)]
    n_out = weighted[0].shape[1]
    rows = np.concatenate([U[:-1].reshape(statistics, -1, n_out) for U in weighted], axis=1)
    return np.vstack([rows.reshape(-1, n_out), np.sum([U[-1] for U in weighted], axis=0)])


def _joined(sets: Sequence[Detectors], shares: Array) -> tuple[Reservoir, Summary]:
    """Return one reservoir of all units, and its summary."""
    delays = np.unique(np.concatenate([one.summary.delays for one in sets]))
    widened = []
    for one in sets:
        own, r = one.summary.delays, one.reservoir
        n = r.n_in // len(own)
        W = np.zeros((len(delays), 2, n, r.N))  # of the series, and of its differences
        W[np.searchsorted(delays, own), int(one.seen is differences)] = r.W.reshape(len(own), n, r.N)
        widened.append(replace(r, W=W.reshape(-1, r.N)))
    return join_reservoirs(widened), Summary(delays, np.hstack([one.summary.thresholds for one in sets]), shares)


def _sets_of(network: Network) -> list[Detectors]:
    """Return the sets of units of a network."""
    assert network.view.summary is not None
    return [Detectors(both, *one) for one in network.view.summary.sets(network.reservoir)]


@dataclass(eq=False)
class _Sums:
    """Weighted sums over sequences of rows with a last column of ones, and of their products with targets."""

    G: Array
    Q: Array

    def __iadd__(self, other: _Sums) -> _Sums:
        self.G += other.G
        self.Q += other.Q
        return self


def _solve_rows(Z: Array, T: Array, w: Array, ridge: float) -> tuple[Array, Array]:
    """Return the readout (M, n_out) of standardised rows Z (n, M) with n <= M, and its intercept."""
    centre, mean, root = w @ Z / w.sum(), w @ T / w.sum(), np.sqrt(w)[:, None]
    Z = root * (Z - centre)  # what is left of means goes to the intercept
    V = Z.T @ _solve_positive(Z @ Z.T, root * (T - mean), ridge)
    return V, mean - centre @ V


def _solve_sums(
    one: Detectors, columns: Columns, data: Dataset, w: Array, *, washout: int, ridge: float
) -> tuple[Array, Array]:
    """Return the readout (M, n_out) of standardised rows, and its intercept, from sums over all sequences."""
    root = np.sqrt(w)[:, None]
    weighted_T = root * _targets(data)

    def sums_of(data: Dataset, which: Array) -> _Sums:
        Z = columns.standardize(one.rows(data.subset(which), washout))
        Z = root[which] * np.hstack([Z, np.ones((len(which), 1))])
        return _Sums(Z.T @ Z, Z.T @ weighted_T[which])

    sums = data.sum(sums_of, np.array_split(np.arange(len(w)), range(MAX_ROWS_PER_SUM, len(w), MAX_ROWS_PER_SUM)))
    n, total, of_targets = sums.G[-1, -1], sums.G[-1, :-1], sums.Q[-1]
    Q = sums.Q[:-1] - np.outer(total, of_targets) / n
    V = _solve_positive(sums.G[:-1, :-1] - np.outer(total, total) / n, Q, ridge)
    return V, of_targets / n - (total / n) @ V


def _solve_positive(G: Array, Q: Array, ridge: float) -> Array:
    """Return (G + ridge I)^-1 Q; G is overwritten."""
    G[np.diag_indices_from(G)] += ridge
    return np.asarray(cho_solve(cho_factor(G, lower=True, overwrite_a=True), Q))
