"""Warnings after a fit: a result that is no better than a trivial one, a penalty or a size that is not right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from echolearn.exceptions import PoorFitWarning, ReadoutWarning
from echolearn.fitting.advice.baselines import (
    NEGLIGIBLE_ERROR_SHARE,
    Outcome,
    cold_start,
    joined,
    lag,
    lags,
    last_value_error,
    usual_target,
)
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, TargetCodec, ValueCodec
from echolearn.fitting.data import OpenedTargets
from echolearn.readout.network import Network, probabilities
from echolearn.readout.ridge import solve_without, squared_error
from echolearn.readout.solver import Ridge, RidgeFit
from echolearn.readout.statistics import Statistics, statistics_of
from echolearn.readout.view import observe
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Piece, Split, cut_out
from echolearn.validation import Array, warn_user

MAX_EXAMINED_NUMBERS = 2**22  # in the rows that are examined
MIN_EXAMINED_FRAMES, MAX_EXAMINED_FRAMES = 500, 8192  # with one target each
MIN_JUDGED_TARGETS = 50  # held-out targets, below which the result is not judged
TRIVIAL_ERROR_SHARE = 0.98  # an error of this share of the trivial one is no better
GOOD_FIT_ERROR_SHARE = 0.02  # share of the variance that is error, below which the smallest ridge is right
PENALTY_GAIN_SHARE = 0.95  # a penalty beyond the edge must bring the error down to this share
PENALTY_TOLERANCE = 0.2  # relative difference up to which two penalties are the same one
LOGIT_FACTOR = 0.8  # factor on logits that a stronger penalty would have
SEPARABLE_ENTROPY_SHARE = 0.5  # of the cross entropy of the shares of the classes, below which a weak penalty is right
TINY_RIDGE_SHARE = 1e-6  # of the mean diagonal of the Gram matrix
INTERPOLATION_ERROR_SHARE = 1e-6  # of the variance of the training targets, which such a ridge leaves as error
HARMFUL_ERROR_SHARE = 0.1  # of the variance of held-out targets, where more columns than targets do harm

RidgeChoice = Callable[[float], Sequence[float] | Array]  # from the mean diagonal of G to the ridges to choose from

DIAGNOSE = "echolearn.diagnostics.diagnose(esn, X, y) lists what limits the fit."


@dataclass(frozen=True, eq=False)
class Examination:
    """The examination of a fit: the outcome on unseen data, None where there are none, and remarks on the readout.

    data: what the outcome is of; cures: what to try where it is poor.
    """

    outcome: Outcome | None = None
    remarks: dict[str, str] = field(default_factory=dict)
    data: str = "held-out"
    cures: str = "more data, more hidden_units, or another input_scaling"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say."""
        return self.outcome is None and not self.remarks


def joined_examinations(found: Sequence[Examination]) -> Examination:
    """Return the examination of an ensemble: the outcomes of all networks, and the remarks that all of them share."""
    outcomes = [one.outcome for one in found if one.outcome is not None]
    shared = set.intersection(*(set(one.remarks) for one in found))
    remarks = {name: text for name, text in found[0].remarks.items() if name in shared}
    return Examination(joined(outcomes) if outcomes else None, remarks, cures=found[0].cures)


@dataclass(frozen=True, eq=False)
class _Rows:
    """One sequence of a sample: H_c and T of the rows with targets, their weights, and which steps they are."""

    H_c: Array
    T: Array
    w: Array
    inputs: Array
    counted: Array

    def spread(self, rows: Array) -> Array:
        """Return an array with an entry for every step; entries without a target are 0."""
        out = np.zeros((len(self.counted), *rows.shape[1:]), rows.dtype)
        out[self.counted] = rows
        return out


def examine(network: Network, split: Split, fit: RidgeFit, ridge: Ridge, *, strengths: Sequence[float]) -> Examination:
    """Return what there is to say of a fitted network, before a softmax readout has seen the held-out data."""
    unseen = None
    if split.held_out is not None and network.reservoir.W_fb is None:
        unseen = _Unseen.of(network, split, split.held_out)
    remarks = _remark_on_columns(network, unseen, given=not callable(ridge))
    if callable(ridge) and unseen is not None:
        remarks |= _remark_on_ridge(unseen, network, ridge, split)
    if unseen is not None and network.readout.strength is not None and len(strengths) > 1:
        remarks |= _remark_on_strength(unseen, network.readout.strength, fit, strengths)
    first = "" if callable(ridge) or network.readout.softmax else "ridge='auto', "
    return Examination(None if unseen is None else unseen.outcome(), remarks, cures=first + Examination.cures)


@dataclass(frozen=True, eq=False)
class _Unseen:
    """A sample of the held-out data, a readout that has not seen it, and its statistics for a ridge readout."""

    rows: list[_Rows]
    U: Array
    statistics: Statistics | None

    @classmethod
    def of(cls, network: Network, split: Split, held_out: Dataset) -> _Unseen | None:
        readout = network.readout
        if not readout.softmax and split.refit and readout.statistics is None:
            return None  # the readout has seen all data, and cannot be solved without some of them
        rows = _observe_some(network, held_out)
        if not rows:
            return None
        U, statistics = readout.U, None
        if readout.statistics is not None:
            H_c, T, w = (np.concatenate([getattr(r, name) for r in rows]) for name in ("H_c", "T", "w"))
            statistics = statistics_of(H_c, T, held_out.n_out, w=w)
            if split.refit:
                without = solve_without(readout.statistics, statistics, readout.ridge)
                if without is None:
                    return None
                U = without
        return cls(rows, U, statistics)

    def outcome(self) -> Outcome:
        outputs = [r.H_c @ self.U.astype(r.H_c.dtype) for r in self.rows]
        return Outcome(
            [r.inputs for r in self.rows],
            [r.spread(r.T) for r in self.rows],
            [r.spread(Y) for r, Y in zip(self.rows, outputs, strict=True)],
            [r.spread(r.w) for r in self.rows],
            True,
        )

    @property
    def count(self) -> int:
        return sum(len(r.T) for r in self.rows)


def _observe_some(network: Network, data: Dataset) -> list[_Rows]:
    """Return the rows of a sample of sequences; of a single long one, of its first steps."""
    reservoir, view = network.reservoir, network.view
    limit = min(max(MAX_EXAMINED_NUMBERS // view.rows(reservoir), MIN_EXAMINED_FRAMES), MAX_EXAMINED_FRAMES)
    every = -(-data.frames // limit)
    some = data.subset(np.arange(0, len(data.X), every))
    if some.lengths.max() > limit:
        some = cut_out(some, [Piece(i, 0, 0, min(n, 2 * limit)) for i, n in enumerate(some.lengths.tolist())])

    def rows_of(data: Dataset, which: Array) -> list[_Rows]:
        found = []
        for i in which:
            seen = observe(reservoir, view, data.batch([i]))
            w = np.ones(len(seen.T)) if seen.w is None else seen.w.astype(np.float64)
            counted = np.arange(len(data.X[i])) >= view.washout
            if data.weights is not None:
                counted &= np.asarray(data.weights[i]) > 0
            if len(seen.T):
                found.append(_Rows(seen.H_c, seen.T, w, np.asarray(data.X[i]), counted))
        return found

    return [row for rows in some.map(rows_of, group_sequences(some.lengths, MAX_EXAMINED_FRAMES)) for row in rows]


def _remark_on_ridge(unseen: _Unseen, network: Network, choice: RidgeChoice, split: Split) -> dict[str, str]:
    """Return a remark on a ridge that was chosen at an edge of its path, if the error still falls there."""
    s, mu, held = network.readout.statistics, network.readout.ridge, unseen.statistics
    if s is None or held is None or unseen.count < MIN_JUDGED_TARGETS:
        return {}
    frames = 0 if split.held_out is None else split.held_out.frames
    edge = edge_of(s, mu, choice, split.train.frames / (split.train.frames + frames))
    variance = target_variance(held)
    if edge is None or not variance > 0:
        return {}
    larger = solve_without(s, held if split.refit else Statistics.zeros(*s.Q.shape), 10 * mu)
    if larger is None:
        return {}
    here, beside = squared_error(held, unseen.U) / variance, squared_error(held, larger) / variance
    if edge == "upper" and not (beside < PENALTY_GAIN_SHARE * here and here < TRIVIAL_ERROR_SHARE):
        return {}
    if edge == "lower" and not (
        here < PENALTY_GAIN_SHARE * beside and GOOD_FIT_ERROR_SHARE < here < TRIVIAL_ERROR_SHARE
    ):
        return {}
    factor, units = (10.0, "fewer") if edge == "upper" else (0.1, "more")
    further = [float(f"{factor**k * mu:.1g}") for k in range(3)]
    text = (
        f"ridge={mu:.2g} was chosen at the {edge} edge of those tried, where the error on held-out data still falls "
        f"({here:.3g} of the variance, with ten times this ridge {beside:.3g}). Try further ones, for example "
        f"ridge={further}, or {units} hidden_units."
    )
    return {"ridge": text}


def edge_of(s: Statistics, mu: float, choice: RidgeChoice, train_share: float) -> str | None:
    """Return "lower" or "upper" if mu is an end of its path, by the statistics of all data or of a share of them."""
    for share in (1.0, train_share):
        path = np.sort(np.asarray(choice(share * s.mean_diagonal), np.float64))
        if len(path) < 2:
            return None
        for edge, end in (("lower", path[0]), ("upper", path[-1])):
            if abs(mu - end) <= PENALTY_TOLERANCE * end:
                return edge
    return None


def target_variance(s: Statistics) -> float:
    """Return the sum of squares of the targets about their mean; without an intercept, about 0."""
    return s.tt - (float(np.vdot(s.Q[-1], s.Q[-1])) / s.n if s.has_intercept else 0.0)


def _remark_on_columns(network: Network, unseen: _Unseen | None, *, given: bool) -> dict[str, str]:
    """Return a remark on more columns than targets with a ridge so small that the training targets are hit exactly.

    given: whether the user has set the ridge. One that was chosen must also have done harm to be remarked on.
    """
    s, readout = network.readout.statistics, network.readout
    if s is None or not (len(s.G) - 1 > s.n and readout.ridge < TINY_RIDGE_SHARE * s.mean_diagonal):
        return {}
    if squared_error(s, readout.U) > INTERPOLATION_ERROR_SHARE * target_variance(s):
        return {}
    held = None if unseen is None else unseen.statistics
    if unseen is None or held is None or not target_variance(held) > 0:
        if not given:
            return {}
    elif squared_error(held, unseen.U) < HARMFUL_ERROR_SHARE * target_variance(held):
        return {}
    text = (
        f"the readout has {len(s.G) - 1} columns of states and inputs for {s.n:g} targets, and with ridge="
        f"{readout.ridge:.2g} it repeats the training targets exactly: other data will be answered poorly. Use fewer "
        f"hidden_units, more data, ridge='auto', or a ridge of {1e-3 * s.mean_diagonal:.1g} or more."
    )
    return {"columns": text}


def _remark_on_strength(unseen: _Unseen, strength: float, fit: RidgeFit, strengths: Sequence[float]) -> dict[str, str]:
    """Return a remark on the weakest or strongest penalty of a softmax readout, where one beyond it would be better.

    A stronger penalty makes logits smaller, a weaker one larger: the cross entropy of scaled logits tells which way is
    better, without another fit.
    """
    Y, T, w = unseen.outcome().rows()
    if len(T) < MIN_JUDGED_TARGETS:
        return {}
    unit = fit.square / fit.n**2
    edge = "upper" if strength >= max(strengths) * unit / (1 + PENALTY_TOLERANCE) else "lower"
    if edge == "lower" and strength > min(strengths) * unit * (1 + PENALTY_TOLERANCE):
        return {}
    factor = LOGIT_FACTOR if edge == "upper" else 1 / LOGIT_FACTOR
    here, beside = (_cross_entropy(f * Y, T, w) for f in (1.0, factor))
    shares = usual_target(T, w, Y.shape[1])
    trivial = -float(shares[shares > 0] @ np.log(shares[shares > 0]))
    # labels that are distinguished well need no penalty at all
    least = NEGLIGIBLE_ERROR_SHARE if edge == "upper" else SEPARABLE_ENTROPY_SHARE
    if not (beside < PENALTY_GAIN_SHARE * here and least * trivial < here < TRIVIAL_ERROR_SHARE * trivial):
        return {}
    cure = (
        "Use fewer hidden_units, more data, or readout='ridge'."
        if edge == "upper"
        else "Use more hidden_units, a larger input_scaling, or readout='ridge'."
    )
    text = (
        f"strength_={strength:.2g}, the penalty of the softmax readout, was chosen at the {edge} edge of its range: "
        f"the cross entropy on held-out data ({here:.3g}) would be {beside:.3g} with logits {factor:g} times as large. "
        f"{cure}"
    )
    return {"strength": text}


def _cross_entropy(Y: Array, T: Array, w: Array) -> float:
    """Return the mean cross entropy of logits Y (K, n_out) for class numbers T (K,)."""
    P = probabilities(Y.astype(np.float64))[np.arange(len(T)), T]
    return float(-np.average(np.log(np.maximum(P, 1e-300)), weights=w))


def warn_of_outcome(found: Examination, codec: TargetCodec) -> None:
    """Warn of all that an examination has found."""
    for remark in found.remarks.values():
        warn_user(remark, ReadoutWarning)
    outcome = found.outcome
    if outcome is None or outcome.count < MIN_JUDGED_TARGETS:
        return
    text = _label_complaint(found, outcome, codec) if isinstance(codec, (ClassCodec, LabelSetCodec)) else None
    if isinstance(codec, ValueCodec):
        text = _value_complaint(found, outcome, codec)
    if text is not None:
        warn_user(text, PoorFitWarning)


def _label_complaint(found: Examination, outcome: Outcome, codec: ClassCodec | LabelSetCodec) -> str | None:
    """Return a text if labels are no better than the most frequent ones, within the error of their number."""
    error, trivial = outcome.error(codec.error), outcome.trivial_error(codec.error)
    if trivial == 0 or error < trivial - np.sqrt(trivial * (1 - trivial) / outcome.count):
        return None
    Y, T, w = outcome.rows()
    usual = "each label's most frequent value"
    if isinstance(codec, ClassCodec):
        usual = repr(codec.labels.tolist()[int(np.argmax(usual_target(T, w, Y.shape[1])))])
    return (
        f"{1 - error:.1%} of the {found.data} labels are right: {'no' if error >= trivial else 'hardly'} better than "
        f"always answering {usual} ({1 - trivial:.1%}). Check whether X tells these labels apart at all and belongs to "
        f"y {_one_by_one(outcome)}; then try {found.cures}. {DIAGNOSE}"
    )


def _one_by_one(outcome: Outcome) -> str:
    return "step by step" if outcome.per_step else "series by series"


def _value_complaint(found: Examination, outcome: Outcome, codec: ValueCodec) -> str | None:
    """Return a text if values are no better than their mean or the last value, or lag behind."""
    error, trivial = outcome.error(codec.error), outcome.trivial_error(codec.error)
    if not trivial > 0:
        return None
    if error > TRIVIAL_ERROR_SHARE * trivial:
        return (
            f"the squared error on {found.data} data is {error / trivial:.3g} of the variance: no better than always "
            f"answering the mean (R² {1 - error / trivial:.2g}). Check whether X has to do with y, "
            f"{_one_by_one(outcome)}; then try {found.cures}. {DIAGNOSE}"
        )
    if not outcome.per_step or error < NEGLIGIBLE_ERROR_SHARE * trivial:
        return None
    last = last_value_error(outcome)
    if last is not None and error > TRIVIAL_ERROR_SHARE * last:
        return (
            f"the squared error on {found.data} data ({error / trivial:.3g} of the variance) is no better than that of "
            f"repeating the last value of the input ({last / trivial:.3g}). Predict changes, y[t] - X[t], instead of "
            f"values, or give inputs that tell more than the past of y. {DIAGNOSE}"
        )
    late = lag(outcome)
    if lags(late, trivial):
        steps, moved, without = late
        return (
            f"predictions lag {steps} step{'s' * (steps > 1)} behind the {found.data} targets: moved to earlier steps, "
            f"{1 - moved / without:.0%} of their squared error goes away. The network repeats the past. Predict "
            f"changes of y instead of values, or give inputs that tell more than its past. {DIAGNOSE}"
        )
    return None


def look_for_cold_start(codec: ValueCodec, targets: OpenedTargets, outputs: Sequence[Array], washout: int) -> None:
    """Warn of a cold start in a score: of targets and outputs per step after the washout, from the initial state."""
    width = len(codec.mean)
    entries = [np.asarray(e) for e in targets.entries]
    if any(e.dtype.kind not in "fiub" or e.size != width * len(e) for e in entries):
        return  # refused later on
    rows = [codec.encode_frames(e.reshape(-1, width)) for e in entries]
    ones = [np.ones(len(e)) for e in entries]
    weights = ones if targets.weights is None else [np.asarray(w) for w in targets.weights]
    kept = [i for i, e in enumerate(entries) if len(e) > 0]
    T, Y, w = ([values[i] for i in kept] for values in (rows, outputs, weights))
    warn_of_cold_start(Outcome([np.empty((len(t), 0)) for t in T], T, Y, w, per_step=True), washout)


def warn_of_cold_start(outcome: Outcome, washout: int) -> None:
    """Warn if first steps, of sequences that start in the initial state, have most of the squared error."""
    found = cold_start(outcome)
    if found is not None:
        steps, share, of_all = found
        warn_user(
            f"the first {steps} steps of each sequence, {of_all:.2g} of all, have {share:.0%} of the squared error: "
            "there the network, which starts in its initial state, has not yet settled. Give warm_up= with the frames "
            f"before X, or fit with washout={washout + steps}.",
            PoorFitWarning,
        )
