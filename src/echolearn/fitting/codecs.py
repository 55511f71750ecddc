"""How targets are encoded for a network and its outputs decoded: the difference between classifiers and regressors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from echolearn.display.facts import brief
from echolearn.fitting.advice.before import warn_of_labels
from echolearn.readout.network import probabilities
from echolearn.sequences.checks import mean_and_scale
from echolearn.sequences.targets import Target, concatenate_targets, one_hot
from echolearn.validation import Array

MIN_SLOPE, MAX_SLOPE = 1e-3, 1e3  # of probabilities by outputs, between which the most likely one is sought
SLOPE_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class ClassCodec:
    """Labels as class numbers; labels (n_classes,) are sorted."""

    labels: Array

    @classmethod
    def of(
        cls, entries: Sequence[Target], per_step: bool, labels: Array | None = None, *, weighted: bool = False
    ) -> ClassCodec:
        """Return the codec of the labels in y; labels: all, if y may lack some; weighted: whether they have weights."""
        found = concatenate_targets(entries, per_step)
        if found.ndim == 2 and found.shape[1] == 1:
            found = column_or_1d(found, warn=True)
        if found.ndim > 1:
            raise ValueError(
                f"y has shape {found.shape}; expected one label each, not a row of them. Check whether X and y are "
                "swapped: fit(X, y)."
            )
        _refuse_other_types(found)
        try:
            _refuse_real_numbers(found)
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # of many classes: reported below
                check_classification_targets(found)
            known = np.unique(found) if labels is None else labels
        except TypeError:
            kinds = sorted({type(label).__name__ for label in found})
            raise ValueError(f"y mixes labels of types {kinds}; use one type, for example strings.") from None
        if len(known) == 0:
            raise ValueError("there is no class at all; a classifier needs at least 2 classes.")
        if len(known) < 2:
            raise ValueError(f"y holds only one class, {known.tolist()[0]!r}; a classifier needs at least 2 classes.")
        if labels is None:
            warn_of_labels(found, weighted=weighted)
        return cls(known)

    @property
    def classes(self) -> int:
        """The number of classes; of other codecs None."""
        return len(self.labels)

    def encode(self, entries: Sequence[Target], per_step: bool) -> list[Target]:
        """Return the targets of each sequence as a network learns them."""
        found = concatenate_targets(entries, per_step)
        if found.ndim == 2 and found.shape[1] == 1:
            entries = [np.ravel(e) for e in entries]
        try:
            unknown = np.setdiff1d(found, self.labels)
        except TypeError:  # labels of another type than the classes, which cannot be ordered among them
            unknown = np.array([e for e in found.tolist() if e not in self.labels.tolist()] or found.tolist(), object)
        if len(unknown):
            raise ValueError(f"y holds labels that were not there when fitting: {unknown[:5].tolist()}.")
        return [np.searchsorted(self.labels, e) for e in entries]

    def encode_frames(self, y: object) -> Array:
        """Return the targets of single frames as rows (K, n_out), for readouts that learn online."""
        known = {label: k for k, label in enumerate(self.labels.tolist())}
        try:
            labels = np.asarray(y).ravel().tolist()
            unknown = [label for label in labels if label not in known]
        except (TypeError, ValueError):  # not hashable, or of several shapes
            labels, unknown = [], [y]
        if unknown:
            raise ValueError(f"y holds labels that were not there when fitting: {unknown[:5]!r:.200}.")
        return one_hot(np.array([known[label] for label in labels], int), len(known), np.float64)

    def decode(self, Y: Array) -> Array:
        """Return the answers that outputs Y (K, n_out) stand for."""
        return np.asarray(self.labels[Y.argmax(axis=1)])

    def probabilities(self, Y: Array, softmax: bool) -> Array:
        """Return the probabilities of the classes; values of a ridge readout move to the nearest distribution."""
        to_distribution = probabilities if softmax else nearest_distribution
        return np.asarray(to_distribution(Y.astype(np.float64)))

    def error(self, Y: Array, T: Array, w: Array | None = None) -> float:
        """Return the sum of the errors of outputs Y for encoded targets T, weighted by w (K,)."""
        wrong = Y.argmax(axis=1) != T
        return float(wrong.sum() if w is None else w @ wrong)


@dataclass(frozen=True, eq=False)
class LabelSetCodec:
    """Rows of 0 and 1, one column per label: several labels may hold at once.

    labels (n_labels,): the numbers of the columns. slopes (n_labels,): of the probability of each label by its output Y
    of a ridge readout, sigmoid(slope (Y - 1/2)), so that a probability above 1/2 is an output above 1/2.
    """

    labels: Array
    slopes: Array

    @classmethod
    def of(cls, entries: Sequence[Target], per_step: bool) -> LabelSetCodec:
        """Return the codec of rows of labels, for outputs that are not yet known."""
        rows = concatenate_targets(entries, per_step)
        constant = np.flatnonzero((rows == rows[0]).all(axis=0))
        if len(constant) == rows.shape[1]:
            raise ValueError("every row of y is the same; a classifier needs at least one label that varies.")
        return cls(np.arange(rows.shape[1]), np.ones(rows.shape[1]))

    @property
    def classes(self) -> None:
        return None

    def encode(self, entries: Sequence[Target], per_step: bool) -> list[Target]:
        rows = concatenate_targets(entries, per_step)
        if not is_label_sets(rows) or rows.shape[1] != len(self.labels):
            raise ValueError(f"y has shape {rows.shape}; expected rows of {len(self.labels)} labels, each 0 or 1.")
        return [np.asarray(e, np.float64) for e in entries]

    def encode_frames(self, y: object) -> Array:
        rows = np.atleast_2d(np.asarray(y))
        if not is_label_sets(rows) or rows.shape[1] != len(self.labels):
            raise ValueError(f"y has shape {rows.shape}; expected rows of {len(self.labels)} labels, each 0 or 1.")
        return rows.astype(np.float64)

    def decode(self, Y: Array) -> Array:
        return (Y > 0.5).astype(np.int64)

    def probabilities(self, Y: Array, softmax: bool) -> Array:
        """Return the probability of each label."""
        return np.asarray(1 / (1 + np.exp(-np.clip(self.slopes * (Y.astype(np.float64) - 0.5), -500, 500))))

    def error(self, Y: Array, T: Array, w: Array | None = None) -> float:
        wrong = ((Y > 0.5) != (T > 0.5)).mean(axis=1)
        return float(wrong.sum() if w is None else w @ wrong)

    def calibrated(self, Y: Array, T: Array, w: Array) -> LabelSetCodec:
        """Return the codec with the slopes that make targets T most likely, for outputs Y with weights w (K,)."""
        slopes = [_most_likely_slope(y - 0.5, t, w) for y, t in zip(Y.astype(np.float64).T, T.T, strict=True)]
        return LabelSetCodec(self.labels, np.array(slopes))


def _refuse_other_types(found: Array) -> None:
    """Refuse labels that a model file cannot hold: dates, durations, bytes and other objects."""
    other = [str(found.dtype)] if found.dtype.kind in "mMS" else []
    if found.dtype.kind == "O":
        kinds = {type(label) for label in found}
        other = sorted(kind.__name__ for kind in kinds if not issubclass(kind, (str, Number, np.bool_)))
    if other:
        raise ValueError(
            f"y holds labels of type {', '.join(other)}, which a model file cannot hold; expected strings or numbers. "
            "Pass np.asarray(y).astype(str); of a list of sequences, that of each."
        )


def _refuse_real_numbers(found: Array) -> None:
    """Refuse targets that are values rather than labels."""
    if found.dtype.kind != "f" or not (odd := found[found != np.round(found)]).size:
        return
    raise ValueError(
        f"Unknown label type: continuous. y holds {len(np.unique(found))} different numbers such as "
        f"{odd.tolist()[0]:.6g}; a classifier expects labels. To predict numbers, use a regressor such "
        "as ESNRegressor, DeepESNRegressor or SeriesRegressor; to predict intervals of them, pass "
        "numpy.digitize(y, bounds)."
    )


def is_label_sets(rows: Array) -> bool:
    """Return whether y has rows of 0 and 1, as integers or bools, with more than one column."""
    return rows.ndim == 2 and rows.shape[1] > 1 and rows.dtype.kind in "iub" and bool(((rows == 0) | (rows == 1)).all())


def _most_likely_slope(z: Array, t: Array, w: Array) -> float:
    """Return the a > 0 that maximises Σ w log of sigmoid(a z) where t = 1, and of its complement where t = 0.

    As Platt (1999) has it, one more target of the other kind is assumed for each kind, so that outputs that separate
    the training labels do not become certainties.
    """
    positive, negative = float(w @ t), float(w @ (1 - t))
    t = np.where(t > 0.5, (positive + 1) / (positive + 2), 1 / (negative + 2))
    low, high = MIN_SLOPE, MAX_SLOPE
    for _ in range(SLOPE_BISECTIONS):  # the derivative falls with a
        middle = np.sqrt(low * high)
        P = 1 / (1 + np.exp(-np.clip(middle * z, -500, 500)))
        low, high = (middle, high) if w @ ((t - P) * z) > 0 else (low, middle)
    return float(np.sqrt(low * high))


@dataclass(frozen=True, eq=False)
class ValueCodec:
    """Values, standardised: mean and scale (n_out,). one_value: whether y has plain numbers instead of rows."""

    mean: Array
    scale: Array
    one_value: bool
    dtype: str

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, entries: Sequence[Target], per_step: bool, dtype: str) -> ValueCodec:
        """Return the codec of the values in y."""
        values = _as_numbers(entries, per_step)
        return cls(*mean_and_scale(values.reshape(len(values), -1), "y"), values.ndim == 1, dtype)

    @property
    def classes(self) -> None:
        return None

    def encode(self, entries: Sequence[Target], per_step: bool) -> list[Target]:
        values = _as_numbers(entries, per_step)
        width = values.size // len(values)
        if width != len(self.mean):
            raise ValueError(f"y has {width} values each; expected {len(self.mean)}, as when fitting.")
        with np.errstate(over="ignore"):
            scaled = [(np.reshape(e, (-1, width)).astype(np.float64) - self.mean) / self.scale for e in entries]
        farthest = max(float(np.abs(e).max()) for e in scaled)
        if not farthest < float(np.finfo(self.dtype).max) ** 0.5:
            raise ValueError(
                f"y holds values {farthest:.3g} standard deviations from those fitted; {self.dtype} has no room for "
                "their squares. Look for errors in y, or fit again."
            )
        return scaled if per_step else [e[0] for e in scaled]

    def encode_frames(self, y: object) -> Array:
        return np.asarray((np.asarray(y) - self.mean) / self.scale)

    def decode(self, Y: Array) -> Array:
        values = Y.astype(np.float64) * self.scale + self.mean
        return np.asarray(values[:, 0] if self.one_value else values)

    def error(self, Y: Array, T: Array, w: Array | None = None) -> float:
        return squared_error(Y, T, w)


TargetCodec = ClassCodec | LabelSetCodec | ValueCodec


def squared_error(Y: Array, T: Array, w: Array | None = None) -> float:
    """Return the squared error, averaged over outputs and summed over targets, weighted by w (K,)."""
    squares = (Y - T) ** 2
    return float((squares.sum() if w is None else w @ squares.sum(axis=1)) / T.shape[1])


def _as_numbers(entries: Sequence[Target], per_step: bool) -> Array:
    values = np.asarray(concatenate_targets(entries, per_step))
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            kind = f"text such as {values.flat[0]!s:.40}" if values.dtype.kind in "US" else f"{values.dtype} entries"
            labels = "To predict labels, use a classifier such as ESNClassifier, DeepESNClassifier or SeriesClassifier."
            raise ValueError(f"y holds {kind}; expected numbers. {labels}") from None
    if values.ndim > 2:
        raise ValueError(f"y has shape {values.shape}; expected a value or a row of values each.")
    return values


def nearest_distribution(Y: Array) -> Array:
    """Return each row moved to the nearest point of the simplex, which keeps the order of the classes; NaN stay NaN.

    All classes are lowered by one amount and cut off at 0. If the k largest are kept, they add up to 1 for the amount
    (their sum - 1) / k; the right k is the largest one for which all of them stay above 0.
    """
    with np.errstate(invalid="ignore"):
        ordered = -np.sort(-Y, axis=1)
        amounts = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, Y.shape[1] + 1)
        kept = np.maximum((ordered > amounts).sum(axis=1), 1)
        P = np.maximum(Y - np.take_along_axis(amounts, kept[:, None] - 1, axis=1), 0.0)
        return np.asarray(P / P.sum(axis=1, keepdims=True))
