"""`diagnose`: a report of what limits a fit, and of what to set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from textwrap import wrap

import numpy as np
from numpy.typing import ArrayLike

from echolearn.diagnostics.stability import echo
from echolearn.estimators import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.fitting.advice.after import TRIVIAL_ERROR_SHARE, edge_of, target_variance
from echolearn.fitting.advice.baselines import (
    NEGLIGIBLE_ERROR_SHARE,
    Labelled,
    cold_start,
    lag,
    lags,
    last_value_error,
    usual_target,
)
from echolearn.fitting.codecs import ClassCodec, ValueCodec
from echolearn.fitting.data import TargetRule
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import NetworkSettings
from echolearn.readout.network import hidden_states
from echolearn.readout.ridge import squared_error
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import ECHO_LIMIT, spectral_radius_of
from echolearn.validation import Array, SequencesLike

Deep = DeepESNClassifier | DeepESNRegressor
Estimator = ESNClassifier | ESNRegressor | SeriesClassifier | SeriesRegressor | Deep

MAX_FRAMES_INSPECTED = 5000  # of which states are looked at
SATURATED_ACTIVITY, SATURATED_SHARE = 0.95, 0.3  # |h| of a saturated unit, and too large a share of such states
CONSTANT_DEVIATION, CONSTANT_SHARE = 1e-5, 0.1  # the deviation of a unit that is constant, and the share of such units
OVERFITTED_RATIO = 2.0  # error here over that of training
NOTABLE_ERROR_SHARE = 0.01  # share of the variance from which on an error counts
UNDERFITTED_ERROR_SHARE = 0.5  # share of the variance that is error in training
OFF_SCALE_DEVIATIONS = 5.0  # mean or deviation of inputs, in units of those of the training data
UNSCALED_DEVIATIONS = 10.0  # the same of features that are not standardised
UNEVEN_CLASS_SHARE = 0.9  # share of the most frequent class
GAP_SHARE = 0.2  # share of missing values or targets
RADIUS_RATIO = 1.5  # spectral radius, in units of that at which a network without leak no longer forgets
GOOD_ERROR_RATIO = 0.1  # error, in units of the trivial one, below which memory is long enough and not too long
FORGETTING_SHARE = 0.5  # share of the steps of a sequence after which its start should be forgotten
SEVERITIES = ("problem", "warning", "note")
REPORT_WIDTH = 120  # characters


@dataclass(frozen=True)
class Finding:
    """One thing that limits a fit."""

    topic: str  # for example "baseline" or "memory"
    severity: str  # one of SEVERITIES
    fact: str  # what was measured, with its figures
    cure: str  # what to set, with a value to try


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`: what limits a fit and what to set, most severe first; a table in a notebook."""

    summary: str  # the result on the given data, beside the trivial one
    findings: Sequence[Finding]

    def __str__(self) -> str:
        lines = [self.summary]
        for found in self.findings:
            lines += wrap(f"{found.severity}: {found.fact}", REPORT_WIDTH, subsequent_indent="  ")
            lines += wrap(f"-> {found.cure}", REPORT_WIDTH, initial_indent="  ", subsequent_indent="     ")
        return "\n".join(lines if self.findings else [*lines, "Nothing stands out."])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(f.severity)}</td><td>{escape(f.fact)}</td><td>{escape(f.cure)}</td></tr>"
            for f in self.findings
        )
        head = "<tr><th>severity</th><th>what was found</th><th>what to do</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else "<p>Nothing stands out.</p>"
        return f"<p>{escape(self.summary)}</p>{table}"


@dataclass(frozen=True, eq=False)
class _Case:
    """A fitted estimator with data to diagnose it by. error and trivial: on these data, of the network and at best of
    an answer that is always the same."""

    esn: Estimator
    labelled: Labelled
    error: float
    trivial: float

    @cached_property
    def settings(self) -> NetworkSettings:
        """The settings of a network with one target per step."""
        return NetworkSettings.of(flat_settings(self.esn))

    @property
    def larger(self) -> str:
        """What may help a network that has learned nothing."""
        if isinstance(self.esn, Deep):
            return "more units, more epochs, or more data"
        return "hidden_units=500, input_scaling=1.0, or more data" if self.esn.per_step_ else "more data"

    @property
    def values(self) -> bool:
        return isinstance(self.esn.codec_, ValueCodec)


def diagnose(esn: Estimator, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None) -> Diagnosis:
    """Find out what limits a fit, and what to set.

    Parameters
    ----------
    esn : ESNClassifier, ESNRegressor, SeriesClassifier, SeriesRegressor, DeepESNClassifier or DeepESNRegressor
        A fitted estimator. For whole series and deep networks, the result, the inputs and the classes are inspected.
    X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
        Sequences, preferably some that it was not fitted to.
    y : array or list of arrays
        Their targets, one per time step or one per series, as when fitting.
    lengths : array of int, default=None
        The lengths of the sequences, if X is one 2-D array of joined sequences.

    Returns
    -------
    Diagnosis
        A `summary`, and `findings` with the most severe first. It prints as text, and as a table in a notebook.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.diagnostics import diagnose
    >>> X = np.random.default_rng(0).normal(size=(600, 1))
    >>> y = X[:, 0] + 0.5 * np.roll(X[:, 0], 1)
    >>> esn = ESNRegressor(30, learn="none", random_state=0).fit(X[:500], y[:500])
    >>> print(diagnose(esn, X[500:], y[500:]))
    R² 1.000 on 100 targets (0 is the mean).
    Nothing stands out.
    """
    if not isinstance(esn, Estimator):
        raise TypeError(
            "diagnose takes a fitted classifier or regressor of echolearn, not "
            f"{type(esn).__name__}. Of a Pipeline give its last step, with X as that step sees it."
        )
    params = flat_settings(esn)
    values = isinstance(esn, (ESNRegressor, SeriesRegressor))
    rule = TargetRule(values=values, ignore_label=params.get("ignore_label"))
    labelled = esn.outcome_of(X, y, lengths, rule)
    outcome, loss = labelled.outcome, esn.codec_.error
    if not np.concatenate(outcome.weights).any():
        raise ValueError("y has no target after the washout; there is nothing to diagnose. Give longer sequences.")
    case = _Case(esn, labelled, outcome.error(loss), outcome.trivial_error(loss))
    looks = STEP_INSPECTIONS if isinstance(esn, (ESNClassifier, ESNRegressor)) else OTHER_INSPECTIONS
    found = [finding for look in looks for finding in look(case)]
    return Diagnosis(_summary(case), sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _summary(case: _Case) -> str:
    """Return the result beside the trivial one."""
    n = int(sum((w > 0).sum() for w in case.labelled.outcome.weights))
    if case.values:
        return f"R² {1 - case.error / max(case.trivial, 1e-300):.3f} on {n} targets (0 is the mean)."
    return f"{1 - case.error:.1%} of {n} labels are right (always the most frequent: {1 - case.trivial:.1%})."


def _baselines(case: _Case) -> Iterator[Finding]:
    """Compare with the most frequent class, the mean and the last value; look for a lag."""
    outcome, error, trivial = case.labelled.outcome, case.error, case.trivial
    cure = f"Check that X and y belong together; then try {case.larger}."
    if not case.values:
        margin = np.sqrt(trivial * (1 - trivial) / outcome.count)
        if trivial > 0 and error >= trivial - margin:
            right = f"{1 - error:.1%} of the labels are right, {1 - trivial:.1%} with the most frequent one always."
            yield Finding("baseline", "problem", right, cure)
        return
    if error > TRIVIAL_ERROR_SHARE * trivial:
        times = error / max(trivial, 1e-300)
        fact = f"The squared error is {times:.2f} times that of always answering the mean."
        yield Finding("baseline", "problem", fact, cure)
        return
    if not outcome.per_step or error < NEGLIGIBLE_ERROR_SHARE * trivial:
        return
    last, late = last_value_error(outcome), lag(outcome)
    if last is not None and error > TRIVIAL_ERROR_SHARE * last:
        yield Finding(
            "last value",
            "problem",
            f"The squared error is {error / last:.2f} times that of repeating the last value of the input.",
            "Predict changes, y[t] - X[t], or give inputs that tell more than the past of y.",
        )
    if lags(late, trivial):
        yield Finding(
            "lag",
            "warning",
            f"Predictions lag {late[0]} steps: moved back, {1 - late[1] / late[2]:.0%} of their squared error goes.",
            "Predict changes of y instead of values, or give inputs that tell more than its past.",
        )


def _starts(case: _Case) -> Iterator[Finding]:
    """Look for a cold start that has most of the error."""
    outcome, labelled, washout = case.labelled.outcome, case.labelled, case.esn.network_.view.washout
    if not (case.values and labelled.cold):
        return
    inputs, targets, outputs, weights = (
        [rows[washout:] for rows in sequences if len(rows) > washout]
        for sequences in (outcome.inputs, outcome.targets, outcome.outputs, outcome.weights)
    )
    found = cold_start(replace(outcome, inputs=inputs, targets=targets, outputs=outputs, weights=weights))
    if found is not None:
        yield Finding(
            "cold start",
            "warning",
            f"The first {found[0]} steps of each sequence ({found[2]:.0%} of all) have {found[1]:.0%} of the error.",
            f"Give warm_up= with the frames before X to predict and score, or fit with washout={washout + found[0]}.",
        )


def _fitting(case: _Case) -> Iterator[Finding]:
    """Compare the errors of training and here, columns with targets, and the ridge with its range."""
    network, settings = case.esn.model_.single, case.settings
    s, readout = network.readout.statistics, network.readout
    if s is None:
        return
    Y, T, w = case.labelled.outcome.rows()
    rows = np.eye(Y.shape[1])[T] if T.ndim == 1 else T
    here = float(np.average(((Y - rows) ** 2).sum(axis=1), weights=w))
    spread = float(np.average(((rows - usual_target(T, w, Y.shape[1])) ** 2).sum(axis=1), weights=w))
    train, variance = squared_error(s, readout.U) / s.n, target_variance(s) / s.n
    units, columns = network.reservoir.N, len(s.G) - 1
    larger = f"ridge={10 * readout.ridge:.1g}" if callable(settings.ridge_choice()) else "ridge='auto'"
    if here > OVERFITTED_RATIO * max(train, 0.0) and here > NOTABLE_ERROR_SHARE * spread:
        yield Finding(
            "overfitting",
            "warning",
            f"The squared error is {here / spread:.2g} of the variance here, and {train / variance:.2g} in training.",
            f"Try hidden_units={max(10, units // 2)}, {larger}, or more data.",
        )
    elif train > UNDERFITTED_ERROR_SHARE * variance:
        yield Finding(
            "underfitting",
            "warning",
            f"Even the training targets are not fitted: {train / variance:.2g} of their variance is error.",
            f"Try hidden_units={2 * units}, input_scaling={2 * np.max(settings.input_scaling):g}, or more features.",
        )
    if columns > s.n:
        yield Finding(
            "columns",
            "warning",
            f"The readout has {columns} columns of states and inputs for {s.n:g} targets.",
            f"Try hidden_units={max(10, int(s.n) // 4)}, or more data.",
        )
    yield from _edges(case)


def _edges(case: _Case) -> Iterator[Finding]:
    """Check whether the ridge was chosen at an edge of its range."""
    readout, choice = case.esn.network_.readout, case.settings.ridge_choice()
    if readout.statistics is None or not callable(choice):
        return
    edge = edge_of(readout.statistics, readout.ridge, choice, 1 - case.settings.validation_fraction)
    if edge is None or case.error < NOTABLE_ERROR_SHARE * case.trivial:
        return
    further = [float(f"{readout.ridge * (10.0 if edge == 'upper' else 0.1) ** k:.1g}") for k in range(3)]
    yield Finding(
        "ridge",
        "note",
        f"ridge={readout.ridge:.2g} was chosen at the {edge} edge of those tried.",
        f"Try ridge={further}, or {'fewer' if edge == 'upper' else 'more'} hidden_units.",
    )


def _units(case: _Case) -> Iterator[Finding]:
    """Look for saturated and constant units, and at the spectral radius after learning."""
    network, data, settings = case.esn.model_.single, case.labelled.data, case.settings
    first = np.flatnonzero(np.cumsum(data.lengths) - data.lengths < MAX_FRAMES_INSPECTED)
    some = replace(data, X=[data.X[int(i)][:MAX_FRAMES_INSPECTED] for i in first])
    states = hidden_states(network, some)
    H = np.concatenate(states)
    if network.reservoir.activation in ("tanh", "sigmoid"):
        F = np.concatenate([_activities(network.reservoir, h) for h in states])
        centred = np.abs(F if network.reservoir.activation == "tanh" else 2 * F - 1)
        share = float((centred > SATURATED_ACTIVITY).mean())
        if share > SATURATED_SHARE:
            yield Finding(
                "saturation",
                "warning",
                f"{share:.0%} of the units' activities are beyond {SATURATED_ACTIVITY} of their range, where they "
                "hardly bend.",
                f"Try input_scaling={np.max(settings.input_scaling) / 4:g}, or standardize=True if it is off.",
            )
    still = float((H.std(axis=0) < CONSTANT_DEVIATION).mean())
    if still > CONSTANT_SHARE:
        yield Finding(
            "constant units",
            "warning",
            f"{still:.0%} of the units hardly change (standard deviation below {CONSTANT_DEVIATION:g}).",
            f"Try input_scaling={4 * np.max(settings.input_scaling):g}, standardize=True, or tanh units.",
        )
    limit = ECHO_LIMIT.get(network.reservoir.activation, 1.0)
    radius = spectral_radius_of(network.reservoir.W_rec)
    if radius > RADIUS_RATIO * limit:
        yield Finding(
            "spectral radius",
            "note",
            f"The spectral radius of W_rec is {radius:.2f}: disturbances may grow.",
            "Try learning={'renormalize': True}, a smaller step_size there, or spectral_radius=0.9.",
        )


def _activities(reservoir: Reservoir, H: Array) -> Array:
    """Return f(z) of each step but the first, from states H: h_t = (1 - a) h_{t-1} + a f(z_t)."""
    if reservoir.backward is not None:
        H = np.where(reservoir.backward, H[::-1], H)
    return np.asarray((H[1:] - (1 - reservoir.leak) * H[:-1]) / reservoir.leak)


def _memory(case: _Case) -> Iterator[Finding]:
    """Compare how long the network remembers its start with the length of the sequences."""
    reservoir, data = case.esn.model_.single.reservoir, case.labelled.data
    if reservoir.W_fb is not None or reservoir.backward is not None or case.error < GOOD_ERROR_RATIO * case.trivial:
        return
    longest = np.asarray(data.X[int(np.argmax(data.lengths))][:1000], np.float64)
    after = echo(reservoir, longest).forgotten_after(1e-2)
    if after is not None and after <= FORGETTING_SHARE * len(longest):
        return
    fact = f"after {after} of {len(longest)} steps" if after is not None else f"not within {len(longest)} steps"
    yield Finding(
        "memory",
        "note",
        f"The network forgets its initial state {fact}: most answers still depend on it.",
        "Try leak=1.0, a spectral_radius of 0.5, or longer sequences.",
    )


def _inputs(case: _Case) -> Iterator[Finding]:
    """Look at the scale of the features, and at gaps in X and y."""
    labelled, inputs, standardized = case.labelled, case.esn.inputs_, case.esn.standardize
    raw = np.concatenate([np.asarray(x, np.float64) for x in labelled.raw])
    empty = float(np.isnan(raw).mean())
    with np.errstate(all="ignore"):
        known = np.where(np.isnan(raw), inputs.fill, raw)
        seen = (known - inputs.mean) / inputs.scale
        off = np.maximum(np.abs(seen.mean(axis=0)), seen.std(axis=0))
    j = int(np.argmax(off))
    names = getattr(case.esn, "feature_names_in_", None)
    name = f"feature {j}" if names is None else f"feature {str(names[j])!r}"
    if standardized and off[j] > OFF_SCALE_DEVIATIONS:
        yield Finding(
            "scale",
            "warning",
            f"Here {name} has mean {known[:, j].mean():.3g}, standard deviation {known[:, j].std():.3g}; in training "
            f"{inputs.mean[j]:.3g} and {inputs.scale[j]:.3g}.",
            "Check its unit, or fit with data like these.",
        )
    elif not standardized and off[j] > UNSCALED_DEVIATIONS:
        yield Finding(
            "scale",
            "warning",
            f"The network sees {name} with mean {known[:, j].mean():.3g}, standard deviation {known[:, j].std():.3g}.",
            "Set standardize=True.",
        )
    if empty > GAP_SHARE:
        yield Finding(
            "gaps", "note", f"{empty:.0%} of the values of X are missing.", "Compare missing='carry' and 'mean'."
        )
    total = labelled.missing + sum(len(w) for w in labelled.outcome.weights)
    if labelled.missing > GAP_SHARE * total:
        yield Finding(
            "missing targets",
            "note",
            f"{labelled.missing} targets are missing and do not count.",
            "Leave sequences without targets out, or give more that have them.",
        )


def _classes(case: _Case) -> Iterator[Finding]:
    """Look for a class that nearly all labels belong to."""
    codec = case.esn.codec_
    if not isinstance(codec, ClassCodec):
        return
    _, T, w = case.labelled.outcome.rows()
    shares = usual_target(T, w, len(codec.labels))
    if shares.max() > UNEVEN_CLASS_SHARE and case.esn.get_params(deep=False)["class_weight"] is None:
        yield Finding(
            "imbalance",
            "note",
            f"{shares.max():.1%} of the labels are {codec.labels.tolist()[int(shares.argmax())]!r}.",
            "Set class_weight='balanced', and judge by scoring='balanced_accuracy'.",
        )


def _learning(case: _Case) -> Iterator[Finding]:
    """Check whether learning has improved the error on held-out data."""
    rows = [row["valid_error"] for row in case.esn.history_ if "valid_error" in row and row.get("network", 1) == 1]
    if not case.settings.learns or len(rows) < 2 or int(np.argmin(rows)) > 0:
        return
    yield Finding(
        "learning",
        "note",
        f"None of {len(rows)} epochs was better on held-out data than the first ({rows[0]:.3g}; last {rows[-1]:.3g}).",
        "Try a smaller step_size in `learning`, more data, or learn='none', which is quicker.",
    )


STEP_INSPECTIONS = (_baselines, _starts, _fitting, _units, _memory, _inputs, _classes, _learning)
OTHER_INSPECTIONS = (_baselines, _inputs, _classes)
