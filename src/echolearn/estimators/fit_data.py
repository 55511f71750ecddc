"""The sequences and targets of a fit, checked: those to learn from, those to validate on, those that are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from echolearn.cluster.sources import open_source
from echolearn.estimators.codecs import TargetCodec
from echolearn.estimators.data_warnings import warn_of_ids, warn_of_scale
from echolearn.estimators.input_codec import InputCodec
from echolearn.estimators.settings import NetworkSettings
from echolearn.estimators.swapped import explained_swap_of_fit
from echolearn.estimators.target_rules import OpenedTargets, TargetRule
from echolearn.sequences.answers import target_names
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.layouts import choose_layout
from echolearn.sequences.opening import Sequences, check_has_time, check_long_enough, open_sequences, unpack
from echolearn.sequences.tables import Unpacked
from echolearn.sequences.targets import Target
from echolearn.validation import Array, SequencesLike, check_pair

# held-out data of a user: (X, y), or (X, y, sample_weight)
Validation = tuple[SequencesLike, SequencesLike] | tuple[SequencesLike, SequencesLike, object]
Weighing = tuple[TargetRule, Array | None]  # which targets are missing, and the weights of the classes


class _ColumnNames(BaseEstimator):
    """Records the column names of a data frame as scikit-learn does, so that a fit that fails leaves no trace."""


@dataclass(frozen=True, eq=False)
class OpenedData:
    """Checked sequences and targets of a fit. feature_names: of a data frame's columns; target_names: of those of y.

    layout: which axis was taken as time, as in `layouts.choose_layout`.
    """

    given: Sequences
    targets: OpenedTargets
    feature_names: Array | None = None
    layout: str = "time_first"
    target_names: list[str] = field(default_factory=list)

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
    rule: TargetRule | None = None,
    sample_weight: object = None,
) -> OpenedData:
    """Check the sequences, targets and weights that the user gave to `fit`.

    gaps: whether NaN is allowed in X; rule: which targets are missing.
    """
    columns = _ColumnNames()
    with explained_swap_of_fit(X, y):
        X, y = open_source(X, y)
        unpacked = unpack(X)
        taken = choose_layout(unpacked, y, layout, lengths)
        check_names(columns, unpacked, taken, reset=True)
        given = open_sequences(unpacked, lengths, gaps=gaps, layout=taken)
        check_has_time(given)
    targets = (rule or TargetRule()).open(y, given, sample_weight)
    names = getattr(columns, "feature_names_in_", None)
    warn_of_ids(given.X, names)
    return OpenedData(given, targets, names, taken, target_names(y))


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
    X, y = open_source(*check_pair("validation", parts[:2] if len(parts) == 3 else validation))
    sample_weight = parts[2] if len(parts) == 3 else None
    given = open_sequences(X, None, inputs.n_features, gaps=inputs.missing != "error", layout=layout)
    check_long_enough(given, washout)
    rule, class_weights = weighing
    targets = rule.open(y, given, sample_weight)
    check_kind(targets, per_step=like.per_step, name="validation")
    encoded = encoded_inputs(given, inputs, per_step=like.per_step, dtype=str(like.dtype))
    data = targets.dataset(encoded.X, codec, str(like.dtype), class_weights)
    if not data.target_weights(washout).any():
        raise ValueError("validation: no target of it counts after the washout; expected at least one.")
    return data


def check_kind(targets: OpenedTargets, *, per_step: bool, name: str) -> None:
    """Refuse targets of another kind than those that were fitted; name: for the error message."""
    if targets.per_step != per_step:
        raise ValueError(f"{name}: its y must be of the same kind as y (one entry per step, or one per sequence).")


def encoded_inputs(given: Sequences, inputs: InputCodec, *, per_step: bool, dtype: str) -> Dataset:
    """Return sequences as the network sees them, without targets."""
    placed = Dataset.place(given.X, (), None, per_step=per_step, dtype=dtype)
    return replace(placed, X=inputs.encode_all(placed))


def warn_of_input_scale(X: Sequence[Array], settings: NetworkSettings) -> None:
    """Warn of inputs that hardly move the units or saturate them; those on a cluster are not fetched for this."""
    if settings.reservoir is not None:
        return  # its input weights may have any scale
    scaling = settings.input_scaling  # one that does not fit is refused when the reservoir is drawn
    fits = np.ndim(scaling) == 0 or np.shape(scaling) == X[0].shape[1:]
    if fits and isinstance(X[0], np.ndarray):
        warn_of_scale(X, scaling, settings.activation)
