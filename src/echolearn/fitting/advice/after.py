"""The answers of a network to data that its readout has not seen, compared with trivial answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from echolearn.exceptions import PoorFitWarning, ReadoutWarning
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, TargetCodec, ValueCodec
from echolearn.fitting.data import OpenedTargets
from echolearn.fitting.model import Prediction
from echolearn.readout.network import Loss, Network, probabilities, sum_of_errors
from echolearn.readout.ridge import solve_without, squared_error
from echolearn.readout.solver import Ridge, RidgeFit
from echolearn.readout.statistics import Statistics, statistics_of
from echolearn.readout.view import observe
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences
from echolearn.sequences.split import Piece, Split, cut_out
from echolearn.validation import Array, user_stacklevel

MOST_STEPS = 20  # by which a prediction may lag, or a target be ahead of an input
RESEMBLES = 0.99  # correlation from which on a target is a later value of an input
MOST_PAIRS = 400  # of a target and an input that are compared
NEARLY_PERFECT = 1e-3  # error, in units of that of the trivial answer, below which a result needs no comment
LEAST_ROWS = 50  # by which a lag is judged
ALIKE = 0.3  # error, in units of the trivial one, of predictions that resemble earlier targets
LAGGING = 0.5  # a prediction lags if this share of its error goes away when it is moved to earlier steps


@dataclass(frozen=True, eq=False)
class Outcome:
    """Inputs, encoded targets, outputs and weights of sequences, one array per sequence and one row per target.

    With one target per step a sequence has a row for every step; steps without a target have weight 0. With one target
    per sequence each array has one row, and there are no inputs.
    """

    inputs: Sequence[Array]
    targets: Sequence[Array]
    outputs: Sequence[Array]
    weights: Sequence[Array]
    per_step: bool

    def rows(self) -> tuple[Array, Array, Array]:
        """Return the outputs, the targets and the weights of all targets that count."""
        w = np.concatenate(self.weights)
        there = w > 0
        return np.concatenate(self.outputs)[there], np.concatenate(self.targets)[there], w[there]

    @property
    def count(self) -> float:
        """The number of targets that count; where weights differ, of as many equal ones as tell as much."""
        return effective_count(np.concatenate(self.weights))

    def error(self, loss: Loss) -> float:
        """Return the mean error per target."""
        Y, T, w = self.rows()
        total, n = sum_of_errors(loss, Y, T, w)
        return total / n

    def trivial_error(self, loss: Loss) -> float:
        """Return the mean error per target of the best answer that is always the same."""
        Y, T, w = self.rows()
        constant = np.broadcast_to(usual_target(T, w, Y.shape[1]), Y.shape)
        total, n = sum_of_errors(loss, constant, T, w)
        return total / n


def effective_count(w: Array) -> float:
    """Return how many targets of equal weight tell as much as targets of these weights."""
    return float(w.sum() ** 2 / max(float((w * w).sum()), 1e-300))


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the sequences of several outcomes as one."""
    return Outcome(
        [x for one in outcomes for x in one.inputs],
        [T for one in outcomes for T in one.targets],
        [Y for one in outcomes for Y in one.outputs],
        [w for one in outcomes for w in one.weights],
        outcomes[0].per_step,
    )


def usual_target(T: Array, w: Array, n_out: int) -> Array:
    """Return the mean (n_out,) of targets: of class numbers, the share of each class."""
    if T.ndim == 1:
        return np.asarray(np.bincount(T, w, n_out) / w.sum())
    return np.asarray(w @ T.astype(np.float64) / w.sum())


def _shifted(first: Sequence[Array], second: Sequence[Array], steps: int) -> tuple[Array, Array]:
    """Return the rows of `first` without the last steps of each sequence, beside those of `second` so much later."""
    pairs = [(a[: len(a) - steps], b[steps:]) for a, b in zip(first, second, strict=True) if len(a) > steps]
    if not pairs:
        return first[0][:0], second[0][:0]
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def last_value_error(outcome: Outcome) -> float | None:
    """Return the mean squared error of answering with the present value of the input whose later values are the target.

    None if the targets (one row of values per step) are not all later values of inputs.
    """
    n_out, n_in = outcome.targets[0].shape[1], outcome.inputs[0].shape[1]
    if n_out * n_in > MOST_PAIRS:
        return None
    ahead = [_input_ahead(outcome, j) for j in range(n_out)]
    errors = []
    for j, found in enumerate(ahead):
        if found is None:
            return None
        i, slope, offset = found
        T, w = (np.concatenate([t[:, j] for t in outcome.targets]), np.concatenate(outcome.weights))
        x = np.concatenate([x[:, i] for x in outcome.inputs])
        there = w > 0
        errors.append(float(np.average((slope * x[there] + offset - T[there]) ** 2, weights=w[there])))
    return float(np.mean(errors))


def _input_ahead(outcome: Outcome, j: int) -> tuple[int, float, float] | None:
    """Return (i, slope, offset) if target j is slope times an input i of up to MOST_STEPS steps later, plus offset."""
    target = [t[:, j] for t in outcome.targets]
    for steps in range(1, MOST_STEPS + 1):
        w, _ = _shifted(outcome.weights, outcome.inputs, steps)
        T, X = _shifted(target, outcome.inputs, steps)
        T, X = T[w > 0].astype(np.float64), X[w > 0].astype(np.float64)
        if len(T) < 2:
            return None
        x, t = X - X.mean(axis=0), T - T.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.nan_to_num(np.abs(x.T @ t) / np.sqrt((x * x).sum(axis=0) * (t @ t)))
        i = int(np.argmax(alike))
        if alike[i] > RESEMBLES:
            slope = float(x[:, i] @ t / (x[:, i] @ x[:, i]))
            # A slow series resembles itself at any lag: only the one that is right has no error left.
            if _is_best_lead(target, outcome, i, steps):
                return i, slope, float(T.mean() - slope * X[:, i].mean())
    return None


def _is_best_lead(target: Sequence[Array], outcome: Outcome, i: int, steps: int) -> bool:
    """Return whether input i is more like the target after these steps than now, where it is known already."""
    w, T = np.concatenate(outcome.weights), np.concatenate(target)
    x = np.concatenate([x[:, i] for x in outcome.inputs])
    now = _correlation(x[w > 0], T[w > 0])
    ahead = _correlation(*_counted(target, [x[:, i] for x in outcome.inputs], outcome.weights, steps))
    return abs(ahead) > abs(now)


def _counted(first: Sequence[Array], second: Sequence[Array], w: Sequence[Array], steps: int) -> tuple[Array, Array]:
    """Return `_shifted` rows whose first row counts."""
    a, b = _shifted(first, second, steps)
    there = _shifted(w, second, steps)[0] > 0
    return a[there], b[there]


def _correlation(a: Array, b: Array) -> float:
    """Return the correlation of two columns; 0 if one is constant."""
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    return float(a @ b / max(float(np.sqrt((a @ a) * (b @ b))), 1e-300))


def lag(outcome: Outcome) -> tuple[int, float, float]:
    """Return by how many steps outputs come after the values they resemble most, and the errors then and without lag.

    The targets are rows of values, one per step. Errors are mean squared ones over the same steps.
    """
    errors: list[float] = []
    enough = max(LEAST_ROWS, int((np.concatenate(outcome.weights) > 0).sum()) // 2)
    for steps in range(MOST_STEPS + 1):
        T, Y = _shifted(outcome.targets, outcome.outputs, steps)
        before, after = _shifted(outcome.weights, outcome.weights, steps)
        there = (before > 0) & (after > 0)
        if errors and there.sum() < enough:
            break
        errors.append(float(((Y[there].astype(np.float64) - T[there]) ** 2).mean()))
    best = int(np.argmin(errors))
    return best, errors[best], errors[0]


def lags(found: tuple[int, float, float], trivial: float) -> bool:
    """Return whether a `lag` is a clear one, of predictions that are not nearly perfect anyway."""
    steps, error, without = found
    moved = 0 < steps < MOST_STEPS and error < min(LAGGING * without, ALIKE * trivial)
    return moved and without > NEARLY_PERFECT * trivial


def errors_by_step(outcome: Outcome) -> Iterator[Array]:
    """Yield the weighted squared error (steps,) of each sequence, 0 where there is no target."""
    for T, Y, w in zip(outcome.targets, outcome.outputs, outcome.weights, strict=True):
        squares = ((Y.astype(np.float64) - np.where(w[:, None] > 0, T, 0)) ** 2).sum(axis=1)
        yield np.where(w > 0, w * squares, 0.0)


NUMBERS = 2**22  # at most so many numbers are in the rows that are examined,
FRAMES = 500, 8192  # and so many frames with one target each, at least and at most;
POOLED_FRAMES = 2**16  # with one target per sequence
ENOUGH = 50  # held-out targets, below which the result is not judged
NO_BETTER = 0.98  # an error of this share of the trivial one is no better
GOOD = 0.02  # share of the variance that is error, below which the smallest ridge is right
HELPS = 0.95  # a penalty beyond the edge must bring the error down to this share
SAME = 0.2  # relative difference up to which two penalties are the same one
LESS_CERTAIN = 0.8  # factor on logits that a stronger penalty would have
SEPARABLE = 0.5  # cross entropy, in units of that of the shares of the classes, below which a weak penalty is right
TINY_RIDGE = 1e-6  # in units of the mean diagonal of the Gram matrix,
INTERPOLATED = 1e-6  # which leaves this share of the variance of the training targets as error
POOR = 0.1  # share of the variance of held-out targets that is error, where more columns than targets do harm
COLD_STEPS, COLD_SHARE = 0.1, 0.5  # the share of first steps that is looked at, and of the error that is too much
COLD_ENOUGH = 0.95  # the washout that is suggested covers this share of the error of these steps
LEAST_COLD = 5  # steps, fewer than which are no cold start

RidgeChoice = Callable[[float], Sequence[float] | Array]  # from the mean diagonal of G to the ridges to choose from

DIAGNOSE = "echolearn.diagnostics.diagnose(esn, X, y) lists what limits the fit."


@dataclass(frozen=True, eq=False)
class Examination:
    """The examination of a fit: the outcome on unseen data, None where there are none, and remarks on the readout."""

    outcome: Outcome | None = None
    remarks: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say."""
        return self.outcome is None and not self.remarks


def joined_examinations(found: Sequence[Examination]) -> Examination:
    """Return the examination of an ensemble: the outcomes of all networks, and the remarks that all of them share."""
    outcomes = [one.outcome for one in found if one.outcome is not None]
    shared = set.intersection(*(set(one.remarks) for one in found))
    remarks = {name: text for name, text in found[0].remarks.items() if name in shared}
    return Examination(joined(outcomes) if outcomes else None, remarks)


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
    """Return what there is to say of a fitted network, before a softmax readout has seen the held-out data.

    ridge: that of the settings, a number or a choice; strengths: those that a softmax readout chose from.
    """
    unseen = None
    if split.held_out is not None and network.reservoir.W_fb is None:
        unseen = _Unseen.of(network, split, split.held_out)
    remarks = _remark_on_columns(network, unseen, given=not callable(ridge))
    if callable(ridge) and unseen is not None:
        remarks |= _remark_on_ridge(unseen, network, ridge, split)
    if unseen is not None and network.readout.strength is not None and len(strengths) > 1:
        remarks |= _remark_on_strength(unseen, network.readout.strength, fit, strengths)
    return Examination(None if unseen is None else unseen.outcome(), remarks)


@dataclass(frozen=True, eq=False)
class _Unseen:
    """A sample of the held-out data, and a readout that has not seen it.

    statistics: of the sample, where the readout is a ridge readout.
    """

    rows: list[_Rows]
    U: Array
    per_step: bool
    statistics: Statistics | None

    @classmethod
    def of(cls, network: Network, split: Split, held_out: Dataset) -> _Unseen | None:
        readout, view = network.readout, network.view
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
        return cls(rows, U, view.pooling is None, statistics)

    def outcome(self) -> Outcome:
        outputs = [r.H_c @ self.U.astype(r.H_c.dtype) for r in self.rows]
        if not self.per_step:
            nothing = np.empty((1, 0))
            return Outcome([nothing] * len(outputs), [r.T for r in self.rows], outputs, [r.w for r in self.rows], False)
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
    least, most = FRAMES
    limit = int(np.clip(NUMBERS // view.rows(reservoir), least, most)) if view.pooling is None else POOLED_FRAMES
    every = -(-data.frames // limit)
    some = data.subset(np.arange(0, len(data.X), every))
    if view.pooling is None and some.lengths.max() > limit:
        some = cut_out(some, [Piece(i, 0, 0, min(n, 2 * limit)) for i, n in enumerate(some.lengths.tolist())])

    def part(data: Dataset, which: Array) -> list[_Rows]:
        found = []
        for i in which:
            seen = observe(reservoir, view, data.batch([i]))
            w = np.ones(len(seen.T)) if seen.w is None else seen.w.astype(np.float64)
            counted = np.ones(1, bool)
            if view.pooling is None:
                counted = np.arange(len(data.X[i])) >= view.washout
                if data.weights is not None:
                    counted &= np.asarray(data.weights[i]) > 0
            if len(seen.T):
                found.append(_Rows(seen.H_c, seen.T, w, np.asarray(data.X[i]), counted))
        return found

    return [row for rows in some.map(part, group_sequences(some.lengths, most)) for row in rows]


def _remark_on_ridge(unseen: _Unseen, network: Network, choice: RidgeChoice, split: Split) -> dict[str, str]:
    """Return a remark on a ridge that was chosen at an edge of its path, if the error still falls there."""
    s, mu, part = network.readout.statistics, network.readout.ridge, unseen.statistics
    if s is None or part is None or unseen.count < ENOUGH:
        return {}
    held_out = 0 if split.held_out is None else split.held_out.frames
    edge = edge_of(s, mu, choice, split.train.frames / (split.train.frames + held_out))
    variance = target_variance(part)
    if edge is None or not variance > 0:
        return {}
    larger = solve_without(s, part if split.refit else Statistics.zeros(*s.Q.shape), 10 * mu)
    if larger is None:
        return {}
    here, beside = squared_error(part, unseen.U) / variance, squared_error(part, larger) / variance
    if edge == "upper" and not (beside < HELPS * here and here < NO_BETTER):
        return {}
    if edge == "lower" and not (here < HELPS * beside and GOOD < here < NO_BETTER):
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
    """Return "lower" or "upper" if mu is an end of the path that it was chosen from.

    The path may follow from the statistics of all data, or from those of the training part, a share of them.
    """
    for share in (1.0, train_share):
        path = np.sort(np.asarray(choice(share * s.mean_diagonal), np.float64))
        if len(path) < 2:
            return None
        for edge, end in (("lower", path[0]), ("upper", path[-1])):
            if abs(mu - end) <= SAME * end:
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
    if s is None or not (len(s.G) - 1 > s.n and readout.ridge < TINY_RIDGE * s.mean_diagonal):
        return {}
    if squared_error(s, readout.U) > INTERPOLATED * target_variance(s):
        return {}
    part = None if unseen is None else unseen.statistics
    if unseen is None or part is None or not target_variance(part) > 0:
        if not given:
            return {}
    elif squared_error(part, unseen.U) < POOR * target_variance(part):
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
    if len(T) < ENOUGH:
        return {}
    unit = fit.square / fit.n**2
    edge = "upper" if strength >= max(strengths) * unit / (1 + SAME) else "lower"
    if edge == "lower" and strength > min(strengths) * unit * (1 + SAME):
        return {}
    factor = LESS_CERTAIN if edge == "upper" else 1 / LESS_CERTAIN
    here, beside = (_cross_entropy(f * Y, T, w) for f in (1.0, factor))
    shares = usual_target(T, w, Y.shape[1])
    trivial = -float(shares[shares > 0] @ np.log(shares[shares > 0]))
    least = NEARLY_PERFECT if edge == "upper" else SEPARABLE  # labels that are told apart well want no penalty at all
    if not (beside < HELPS * here and least * trivial < here < NO_BETTER * trivial):
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
        warnings.warn(remark, ReadoutWarning, stacklevel=user_stacklevel())
    outcome = found.outcome
    if outcome is None or outcome.count < ENOUGH:
        return
    text = _label_complaint(outcome, codec) if isinstance(codec, (ClassCodec, LabelSetCodec)) else None
    if isinstance(codec, ValueCodec):
        text = _value_complaint(outcome, codec)
    if text is not None:
        warnings.warn(text, PoorFitWarning, stacklevel=user_stacklevel())


def _label_complaint(outcome: Outcome, codec: ClassCodec | LabelSetCodec) -> str | None:
    """Return a text if labels are no better than the most frequent ones, within the error of their number."""
    error, trivial = outcome.error(codec.error), outcome.trivial_error(codec.error)
    if trivial == 0 or error < trivial - np.sqrt(trivial * (1 - trivial) / outcome.count):
        return None
    Y, T, w = outcome.rows()
    usual = "each label's most frequent value"
    if isinstance(codec, ClassCodec):
        usual = repr(codec.labels.tolist()[int(np.argmax(usual_target(T, w, Y.shape[1])))])
    return (
        f"{1 - error:.1%} of the held-out labels are right: {'no' if error >= trivial else 'hardly'} better than "
        f"always answering {usual} ({1 - trivial:.1%}). Look whether X tells these labels apart at all and belongs to "
        f"y step by step; then try more data, more hidden_units, or another input_scaling. {DIAGNOSE}"
    )


def _value_complaint(outcome: Outcome, codec: ValueCodec) -> str | None:
    """Return a text if values are no better than their mean or the last value, or lag behind."""
    error, trivial = outcome.error(codec.error), outcome.trivial_error(codec.error)
    if not trivial > 0:
        return None
    if error > NO_BETTER * trivial:
        return (
            f"the squared error on held-out data is {error / trivial:.3g} of the variance: no better than always "
            f"answering the mean (R² {1 - error / trivial:.2g}). Look whether X has to do with y, step by step; "
            f"then try more data, more hidden_units, or another input_scaling. {DIAGNOSE}"
        )
    if not outcome.per_step or error < NEARLY_PERFECT * trivial:
        return None
    last = last_value_error(outcome)
    if last is not None and error > NO_BETTER * last:
        return (
            f"the squared error on held-out data ({error / trivial:.3g} of the variance) is no better than that of "
            f"repeating the last value of the input ({last / trivial:.3g}). Predict changes, y[t] - X[t], instead of "
            f"values, or give inputs that tell more than the past of y. {DIAGNOSE}"
        )
    found = lag(outcome)
    if lags(found, trivial):
        steps, moved, without = found
        return (
            f"predictions lag {steps} step{'s' * (steps > 1)} behind the held-out targets: moved to earlier steps, "
            f"{1 - moved / without:.0%} of their squared error goes away. The network repeats the past. Predict "
            f"changes of y instead of values, or give inputs that tell more than its past. {DIAGNOSE}"
        )
    return None


def cold_start(outcome: Outcome) -> tuple[int, float, float] | None:
    """Return how many first steps have most of the squared error, their share of it, and that of the steps.

    None if they have not, or if the error is small anyway. The outcome must be of values per step of sequences that
    start in the initial state, without the washout.
    """
    errors = list(errors_by_step(outcome))
    longest = int(np.median([len(e) for e in errors]) * COLD_STEPS)
    total = float(sum(e.sum() for e in errors))
    if longest < LEAST_COLD or not total > 0:
        return None
    first = np.sum([np.pad(e[:longest], (0, longest - min(longest, len(e)))) for e in errors], axis=0)
    steps = int(np.argmax(np.cumsum(first) > COLD_ENOUGH * np.sum(first))) + 1
    share = float(np.sum(first[:steps])) / total
    _, T, w = outcome.rows()
    variance = float(w @ ((T - usual_target(T, w, T.shape[1])) ** 2).sum(axis=1))
    if share < COLD_SHARE or total < NEARLY_PERFECT * variance:
        return None
    return steps, share, steps * len(errors) / sum(len(e) for e in errors)


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
        warnings.warn(
            f"the first {steps} steps of each sequence, {of_all:.2g} of all, have {share:.0%} of the squared error: "
            "there the network, which starts in its initial state, has not yet settled. Give warm_up= with the frames "
            f"before X, or fit with washout={washout + steps}.",
            PoorFitWarning,
            stacklevel=user_stacklevel(),
        )


@dataclass(frozen=True, eq=False)
class Labelled:
    """The outcome on given sequences.

    data: the inputs of the network; raw: the sequences as they came; cold: whether they start in the initial state;
    missing: how many targets are.
    """

    outcome: Outcome
    data: Dataset
    raw: Sequence[Array]
    cold: bool
    missing: int


def labelled(
    given: Sequences,
    targets: OpenedTargets,
    prediction: Prediction,
    outputs: Sequence[Array],
    *,
    codec: TargetCodec,
    skip: Array,
) -> Labelled:
    """Return the outcome; the first `skip` steps of each sequence do not count."""
    per_step = targets.per_step
    encoded = targets.encoded(codec)
    T = [np.asarray(t) if per_step else np.asarray(t)[None] for t in encoded]
    present = targets.present
    weights = [np.ones(len(t)) if present is None else np.ravel(present[i]).astype(float) for i, t in enumerate(T)]
    if per_step:
        for w, n in zip(weights, skip, strict=True):
            w[:n] = 0
        inputs = [np.asarray(x) for x in prediction.data.X]
    else:
        inputs = [np.empty((1, 0))] * len(T)
    missing = 0 if present is None else int(sum((~p).sum() for p in present))
    outcome = Outcome(inputs, T, list(outputs), weights, per_step)
    return Labelled(outcome, prediction.data, given.X, prediction.start is None, missing)
