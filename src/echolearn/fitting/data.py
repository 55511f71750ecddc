"""Which entries of y are targets, and how much each of them counts.

Missing targets (NaN, or the label that `ignore_label` names) have weight 0 in the `Dataset` of a fit: their frames run
through the network, and nothing is learned from them or scored on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from echolearn import cluster
from echolearn.exceptions import InputWarning
from echolearn.fitting.advice.before import explained_swap_of_fit, warn_of_ids, warn_of_scale
from echolearn.fitting.codecs import TargetCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.settings import NetworkSettings
from echolearn.sequences.answers import target_names
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.layouts import choose_layout
from echolearn.sequences.opening import (
    Sequences,
    check_has_time,
    check_long_enough,
    is_remote_source,
    open_sequences,
    unpack,
)
from echolearn.sequences.tables import Unpacked
from echolearn.sequences.targets import Target, open_targets, open_weights
from echolearn.validation import Array, SequencesLike, check_pair, warn_user

ClassWeight = str | Mapping[object, float] | None

MIN_MEAN_WEIGHT = 0.01  # mean weight of the targets below which the weights were probably meant as shares of 1


@dataclass(frozen=True, eq=False)
class OpenedTargets:
    """Checked targets: one entry per sequence, with one target per step or one each.

    present: where there are targets, bool (steps,) or () per sequence; None: everywhere. weights: the `sample_weight`
    that was given, in the same form, 0 where there is no target; None: 1 everywhere.
    """

    entries: list[Target]
    per_step: bool
    present: list[Array] | None = None
    weights: list[Array] | None = None

    def known(self) -> list[Target]:
        """Return the targets that exist, one entry per sequence, without sequences that have none."""
        if self.present is None:
            return self.entries
        pairs = list(zip(self.entries, self.present, strict=True))
        if self.per_step:
            return [entry[there] for entry, there in pairs if there.any()]
        return [entry for entry, there in pairs if there]

    def after(self, steps: Array) -> OpenedTargets:
        """Return the targets (one per step) without the first steps of each sequence."""
        entries, present, weights = (
            None if values is None else [value[n:] for value, n in zip(values, steps, strict=True)]
            for values in (self.entries, self.present, self.weights)
        )
        assert entries is not None
        return OpenedTargets(entries, self.per_step, present, weights)

    def encoded(self, codec: TargetCodec) -> list[Target]:
        """Return the targets as a network learns them; missing ones are the class number -1, or NaN."""
        if self.present is None:
            return codec.encode(self.entries, self.per_step)
        known = codec.encode(self.known(), self.per_step)
        like, found = np.asarray(known[0]), iter(known)
        blank, shape = (-1 if like.dtype.kind in "iu" else np.nan), like.shape[1:] if self.per_step else like.shape
        out = []
        for there in self.present:
            entry = np.full((*there.shape, *shape), blank, like.dtype)
            if there.any():
                entry[there] = next(found)
            out.append(entry)
        return out

    def dataset(self, X: Sequence[Array], codec: TargetCodec, dtype: str, class_weights: Array | None) -> Dataset:
        """Return sequences with encoded targets and their weights; class_weights: those of the classes, or None."""
        y = self.encoded(codec)
        weights = self.weights
        if class_weights is not None:
            own = [np.where(np.asarray(e) < 0, 0.0, class_weights[e]) for e in y]
            weights = own if weights is None else [w * c for w, c in zip(weights, own, strict=True)]
        if weights is not None and all((w == 1).all() for w in weights):
            weights = None
        return Dataset.place(X, y, codec.classes, per_step=self.per_step, dtype=dtype, weights=weights)


@dataclass(frozen=True)
class TargetRule:
    """What an estimator takes for a missing target, and what the classes of a classifier weigh.

    values: NaN means that there is no target; ignore_label: that label does, NaN for NaN and None.
    """

    values: bool = False
    ignore_label: object = None
    class_weight: ClassWeight = None

    @property
    def takes_nan(self) -> bool:
        """Whether NaN (and None) in y means that there is no target."""
        return self.values or _is_nan(self.ignore_label)

    def open(self, y: object, given: Sequences, sample_weight: object = None) -> OpenedTargets:
        """Check targets and their weights."""
        entries, per_step = open_targets(y, given, missing=self.takes_nan)
        weights = open_weights(sample_weight, given, per_step=per_step)
        present = self._present(entries, per_step)
        if present is not None:
            given_weights = weights or [np.ones(there.shape) for there in present]
            weights = [np.where(there, w, 0.0) for w, there in zip(given_weights, present, strict=True)]
            if not any(there.any() for there in present):
                what = "NaN" if self.takes_nan else f"ignore_label={self.ignore_label!r}"
                raise ValueError(f"y holds no targets: every entry is {what}. At least one must be known.")
        if weights is not None:
            _check_weights(weights)
        return OpenedTargets(entries, per_step, present, weights)

    def _present(self, entries: Sequence[Target], per_step: bool) -> list[Array] | None:
        """Return where there are targets, or None if there are everywhere."""
        if not self.values and self.ignore_label is None:
            return None
        missing = [self._missing(np.asarray(entry)) for entry in entries]
        rows = [np.asarray(m.reshape(*m.shape[: int(per_step)], -1)) for m in missing]
        if not any(row.any() for row in rows):
            return None
        if any((row.any(axis=-1) != row.all(axis=-1)).any() for row in rows):
            warn_user(
                "some rows of y lack only some of their values: these rows are left out as a whole. Fill in the "
                "missing values, or fit one estimator per column, to learn from the others.",
                InputWarning,
            )
        return [np.asarray(~row.any(axis=-1)) for row in rows]

    def _missing(self, entry: Array) -> Array:
        """Return where single values or labels are missing."""
        if self.takes_nan:
            if entry.dtype.kind == "f":
                return np.isnan(entry)
            if entry.dtype.kind == "O":
                flat = [value is None or _is_nan(value) for value in entry.ravel().tolist()]
                return np.array(flat, bool).reshape(entry.shape)
            return np.zeros(entry.shape, bool)
        # A label of another type, such as a number among strings, is equal to none of them.
        return np.array([value == self.ignore_label for value in entry.ravel().tolist()], bool).reshape(entry.shape)

    def class_weights(self, codec: TargetCodec, labels: Array, targets: OpenedTargets) -> Array | None:
        """Return the weight of each class (n_classes,), or None for equal ones; labels: all classes, in order."""
        if self.class_weight is None:
            return None
        if codec.classes is None:
            raise ValueError(
                f"class_weight={self.class_weight!r:.80} with rows of labels; expected None. Use sample_weight= to "
                "give some rows more weight."
            )
        if isinstance(self.class_weight, str):
            return _balanced(targets.encoded(codec), targets.weights, codec.classes)
        known = labels.tolist()
        unknown = [label for label in self.class_weight if label not in known]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[:5]!r:.80}, which y does not hold; expected some of {known!r:.80}."
            )
        return np.array([float(self.class_weight.get(label, 1.0)) for label in known])


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _check_weights(weights: list[Array]) -> None:
    """Refuse weights that leave no target, and warn of weights that were meant as shares of 1."""
    total, count = sum(float(w.sum()) for w in weights), sum(np.count_nonzero(w) for w in weights)
    if total == 0:
        raise ValueError("sample_weight is zero wherever y holds a target: nothing would be left to learn from.")
    if total < MIN_MEAN_WEIGHT * count:
        warn_user(
            f"sample_weight adds up to {total:.3g} for {count} targets. A weight counts like so many targets, so "
            "that the ridge will seem large beside so few; multiply the weights until their mean is 1.",
            InputWarning,
        )


def _balanced(y: list[Target], weights: list[Array] | None, classes: int) -> Array:
    """Return n / (n_classes n_k), as scikit-learn defines it; n_k: the weight of all targets of class k, n: of all."""
    labels = np.concatenate([np.ravel(e) for e in y])
    w = np.ones(len(labels)) if weights is None else np.concatenate([np.ravel(v) for v in weights])
    counts = np.bincount(labels[labels >= 0], w[labels >= 0], classes)
    with np.errstate(divide="ignore"):
        return np.where(counts > 0, counts.sum() / (classes * counts), 1.0)


# held-out data of a user: (X, y), or (X, y, sample_weight)
Validation = tuple[SequencesLike, SequencesLike] | tuple[SequencesLike, SequencesLike, object]
Weighing = tuple[TargetRule, Array | None]  # which targets are missing, and the weights of the classes


class _ColumnNames(BaseEstimator):
    """Records the column names of a data frame as scikit-learn does, so that a fit that fails leaves no trace."""


@dataclass(frozen=True, eq=False)
class FitData:
    """Checked sequences and targets of a fit. feature_names: of a data frame's columns; target_names: of those of y.

    layout: which axis was taken as time, as in `layouts.choose_layout`.
    """

    given: Sequences
    targets: OpenedTargets
    feature_names: Sequence[str] = ()
    layout: str = "time_first"
    target_names: Sequence[str] = ()

    @property
    def entries(self) -> list[Target]:
        """The targets, one entry per sequence."""
        return self.targets.entries

    @property
    def per_step(self) -> bool:
        """Whether there is one target per step."""
        return self.targets.per_step


def open_data(
    X: SequencesLike,
    y: SequencesLike,
    lengths: ArrayLike | None = None,
    *,
    gaps: bool = False,
    layout: str = "auto",
    series: bool = False,
    rule: TargetRule | None = None,
    sample_weight: object = None,
) -> FitData:
    """Check what `fit` was given; gaps: whether NaN is allowed in X; series: whether there is one target per series."""
    columns = _ColumnNames()
    with explained_swap_of_fit(X, y):
        if is_remote_source(X):
            X, y = cluster.open_source(X, y)
        unpacked = unpack(X)
        taken = choose_layout(unpacked, y, layout, lengths, series=series)
        check_names(columns, unpacked, taken, reset=True)
        given = open_sequences(unpacked, lengths, gaps=gaps, layout=taken)
        check_has_time(given)
    targets = (rule or TargetRule()).open(y, given, sample_weight)
    names = getattr(columns, "feature_names_in_", None)
    warn_of_ids(given.X, names)
    return FitData(given, targets, () if names is None else names.tolist(), taken, target_names(y))


def check_names(owner: BaseEstimator, unpacked: Unpacked, layout: str, *, reset: bool) -> None:
    """Compare the column names of a data frame with those of the fit, or record them, as scikit-learn does."""
    steps = layout == "rows" and unpacked.table  # its columns are steps, not features
    if unpacked.features is not None and not steps:
        validate_data(owner, unpacked.features, reset=reset, skip_check_array=True)


def open_validation(
    validation: Validation | None,
    codec: TargetCodec,
    inputs: InputCodec,
    weighing: Weighing,
    *,
    like: Dataset,
    washout: int,
    layout: str = "time_first",
) -> Dataset | None:
    """Check the held-out data that the user gave, if any; they must be of the kind of the training data `like`."""
    if validation is None:
        return None
    parts: Sequence[object] = validation if isinstance(validation, (tuple, list)) else ()
    X, y = check_pair("validation", parts[:2] if len(parts) == 3 else validation)
    if is_remote_source(X):
        X, y = cluster.open_source(X, y)
    sample_weight = parts[2] if len(parts) == 3 else None
    given = open_sequences(X, None, inputs.n_features, gaps=inputs.missing != "error", layout=layout)
    check_long_enough(given, washout)
    rule, class_weights = weighing
    targets = rule.open(y, given, sample_weight)
    check_kind(targets, per_step=like.per_step, name="validation")
    encoded = inputs.dataset(given.X, per_step=like.per_step, dtype=str(like.dtype))
    data = targets.dataset(encoded.X, codec, str(like.dtype), class_weights)
    if not data.target_weights(washout).any():
        raise ValueError("validation: no target of it counts after the washout; expected at least one.")
    return data


def check_kind(targets: OpenedTargets, *, per_step: bool, name: str) -> None:
    """Refuse targets of another kind than those that were fitted; name: for the error message."""
    if targets.per_step != per_step:
        raise ValueError(f"{name}: its y must be of the same kind as y (one entry per step, or one per sequence).")


def warn_of_input_scale(X: Sequence[Array], settings: NetworkSettings) -> None:
    """Warn of inputs that hardly move the units or saturate them; those on a cluster are not fetched for this."""
    if settings.reservoir is not None:
        return  # its input weights may have any scale
    scaling = settings.input_scaling  # one that does not fit is refused when the reservoir is drawn
    fits = np.ndim(scaling) == 0 or np.shape(scaling) == X[0].shape[1:]
    if fits and isinstance(X[0], np.ndarray):
        warn_of_scale(X, scaling, settings.activation)
