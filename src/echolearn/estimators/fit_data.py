"""The sequences and targets of a fit, checked: those to learn from, those to validate on, those that are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from echolearn._typing import Array, SequencesLike
from echolearn.cluster.sources import open_source
from echolearn.estimators.codecs import TargetCodec
from echolearn.estimators.data_warnings import warn_of_scale
from echolearn.estimators.input_codec import InputCodec
from echolearn.estimators.settings import NetworkSettings
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.targets import Target
from echolearn.sequences.validation import (
    InputSequences,
    check_has_time,
    check_long_enough,
    open_sequences,
    open_targets,
)
from echolearn.validation.values import check_pair


class _ColumnNames(BaseEstimator):
    """Records the column names of a data frame as scikit-learn does, so that a fit that fails leaves no trace."""


@dataclass(frozen=True, eq=False)
class OpenedData:
    """Checked sequences and targets of a fit: one entry per sequence. feature_names: of a data frame's columns."""

    given: InputSequences
    entries: list[Target]
    per_step: bool
    feature_names: Array | None = None


def open_data(
    X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None = None, *, gaps: bool = False
) -> OpenedData:
    """Check the sequences and targets that the user gave to `fit`. gaps: whether NaN is allowed in X."""
    X, y = open_source(X, y)
    names = None
    if is_data_frame(X):
        columns = _ColumnNames()
        finite = "allow-nan" if gaps else True
        X = validate_data(columns, X, dtype=[np.float64, np.float32], ensure_all_finite=finite)
        names = getattr(columns, "feature_names_in_", None)
    given = open_sequences(X, lengths, gaps=gaps)
    check_has_time(given)
    entries, per_step = open_targets(y, given)
    return OpenedData(given, entries, per_step, names)


def open_validation(
    validation: tuple[SequencesLike, SequencesLike] | None,
    codec: TargetCodec,
    inputs: InputCodec,
    *,
    like: Dataset,
    washout: int,
) -> Dataset | None:
    """Check the held-out data that the user gave, if any; they must be of the kind of the training data `like`."""
    if validation is None:
        return None
    X, y = open_source(*check_pair("validation", validation))
    given = open_sequences(X, None, inputs.n_features, gaps=inputs.missing != "error")
    check_long_enough(given, washout)
    return encoded_data(given, y, codec, inputs, per_step=like.per_step, dtype=str(like.dtype), name="validation")


def encoded_data(
    given: InputSequences,
    y: SequencesLike,
    codec: TargetCodec,
    inputs: InputCodec,
    *,
    per_step: bool,
    dtype: str,
    name: str,
) -> Dataset:
    """Return encoded sequences and targets; y must be of the kind that is fitted. name: for the error message."""
    entries, found = open_targets(y, given)
    if found != per_step:
        raise ValueError(f"{name}: its y must be of the same kind as y (one entry per step, or one per sequence).")
    encoded = codec.encode(entries, per_step)
    X = encoded_inputs(given, inputs, per_step=per_step, dtype=dtype).X
    return Dataset.place(X, encoded, codec.classes, per_step=per_step, dtype=dtype)


def encoded_inputs(given: InputSequences, inputs: InputCodec, *, per_step: bool, dtype: str) -> Dataset:
    """Return sequences as the network sees them, without targets."""
    placed = Dataset.place(given.X, (), None, per_step=per_step, dtype=dtype)
    return replace(placed, X=inputs.encode_all(placed))


def is_data_frame(X: SequencesLike) -> bool:
    """Return whether X is a table with named columns."""
    return getattr(X, "ndim", 0) == 2 and not isinstance(X, np.ndarray) and hasattr(X, "columns")


def warn_of_input_scale(X: Sequence[Array], settings: NetworkSettings) -> None:
    """Warn of inputs that hardly move the units or saturate them; those on a cluster are not fetched for this."""
    if settings.reservoir is not None:
        return  # its input weights may have any scale
    scaling = settings.input_scaling  # one that does not fit is refused when the reservoir is drawn
    fits = np.ndim(scaling) == 0 or np.shape(scaling) == X[0].shape[1:]
    if fits and isinstance(X[0], np.ndarray):
        warn_of_scale(X, scaling, settings.activation)
