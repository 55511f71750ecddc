"""Warnings about inputs and labels from which little can be learned, before the work starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike

from echolearn.exceptions import InputWarning
from echolearn.reservoir._activations import BOUNDED_ACTIVATIONS
from echolearn.reservoir._reservoir import input_scales
from echolearn.sequences.answers import DictForm, Form, TableForm
from echolearn.sequences.checks import MAX_STANDARDISED, mean_and_scale
from echolearn.sequences.opening import Sequences
from echolearn.sequences.targets import Target
from echolearn.validation import Array, warn_user

# Where reliability/stress.py saw results turn poor. The drive of a unit is W'x.
MAX_DRIVE, MIN_DRIVE = 60.0, 3e-4  # above, units only see the sign of their input; below, it is lost in rounding errors
MAX_MEAN_DRIVE = 4.0  # by the means of the features, above which units sit where they hardly bend,
MAX_MEAN_TO_SPREAD = 1e3  # if it is also this many times the drive by their spread;
MAX_BOUNDED_MEAN_TO_SPREAD = 8.0  # of tanh and sigmoid units
MAX_SCALE_TO_RANGE = 10.0  # the scale of inputs by the range of nine tenths of them: more, and these are all alike
MAX_CLASS_SHARE = 0.97  # of the labels: more, and the answer was always the same
MIN_MANY_CLASSES, MIN_LABELS_PER_CLASS = 20, 15  # classes, and labels for each, that are too few
MIN_ID_SEQUENCES = 5  # sequences from which on whole numbers that are constant in each are taken for their names
MIN_ROWS_PER_ID = 5  # rows on average for which a column holds a number, from which on it is taken for a name
MIN_WHOLE_SEQUENCES = 5  # from which on labels that are constant in each are taken for those of whole sequences
MAX_SCALED_SEQUENCES, MAX_SCALED_NUMBERS = 1000, 4e5  # from which the scale of inputs is estimated


def warn_of_scale(X: Sequence[Array], input_scaling: ArrayLike, activation: str) -> None:
    """Warn of inputs that hardly move the units, or hold them at their limits."""
    mean, spread = _scale_of_some(X)
    widest = np.ravel(input_scales(input_scaling, X[0].shape[1]))
    weight = widest / np.sqrt(3)  # the standard deviation of a uniform weight
    with np.errstate(over="ignore"):
        drives = np.abs(weight) * np.hypot(mean, spread)
        drive, moved = float(np.linalg.norm(drives)), float(np.linalg.norm(weight * spread))
        shift = float(np.linalg.norm(weight * mean))
    apart = MAX_BOUNDED_MEAN_TO_SPREAD if activation in BOUNDED_ACTIVATIONS else MAX_MEAN_TO_SPREAD
    cure = "Centre the features and scale them to about 1, for example with FrameWise(StandardScaler()) in a Pipeline."
    j = int(np.argmax(drives))
    about = f"(feature {j}: mean {mean[j]:.2g}, standard deviation {spread[j]:.2g})"
    if not spread.any():
        if not all((x == X[0][0]).all() for x in X):  # what varies too rarely for the sample may yet be of use
            return
        text = "all features are constant: the network can only tell how many steps have passed. Look at X."
    elif drive > MAX_DRIVE and activation in BOUNDED_ACTIVATIONS:
        text = (
            f"inputs drive the units by about {drive:.2g} {about}, far beyond where they bend (about 1), so that they "
            f"forget the past. {cure}"
        )
    elif moved < MIN_DRIVE:
        text = (
            f"inputs move the units by about {moved:.2g} only (largest standard deviation of a feature: "
            f"{spread.max():.2g}): they are lost beside bias, ridge and rounding errors. {cure}"
        )
    elif shift > max(MAX_MEAN_DRIVE, apart * moved):
        text = (
            f"the means of the features shift the units by about {shift:.2g}, while their changes move them by "
            f"{moved:.2g} only {about}. {cure}"
        )
    else:
        return
    warn_user(text, InputWarning)


def warn_of_extreme_values(X: Sequence[Array], scale: Array) -> None:
    """Warn of features that a few extreme values scale (n_features,) so far that the network sees the others as one."""
    table = _some(X)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of features that are only gaps here
        low, high = np.nanquantile(table, (0.05, 0.95), axis=0)
    for j in np.flatnonzero((high > low) & (scale > MAX_SCALE_TO_RANGE * (high - low))):
        warn_user(
            f"a few values of feature {j} of X are so far from the others that these look alike to the network: nine "
            f"tenths lie between {low[j]:.3g} and {high[j]:.3g}, and the standard deviation by which all are divided "
            f"is {scale[j]:.3g}. Replace such values by NaN, with missing='carry', if they are mistakes or stand for "
            "missing values; otherwise clip them, or take logarithms.",
            InputWarning,
        )


def _some(X: Sequence[Array]) -> Array:
    """Return a quick sample of the steps of all sequences."""
    some = X[:: -(-len(X) // MAX_SCALED_SEQUENCES)]
    every = int(np.ceil(sum(x.size for x in some) / MAX_SCALED_NUMBERS))
    return np.concatenate([x[::every] for x in some]).astype(np.float64)


def _scale_of_some(X: Sequence[Array]) -> tuple[Array, Array]:
    """Return mean and standard deviation (0 where constant) of each feature, from a quick sample of steps."""
    table = np.clip(_some(X), -MAX_STANDARDISED, MAX_STANDARDISED)
    mean, spread = mean_and_scale(table, "X")
    return mean, np.where(np.ptp(table, axis=0) > 0, spread, 0.0)


def warn_of_ids(X: Sequence[Array], names: Array | None) -> None:
    """Warn of features that are whole numbers, one in each sequence and another in every other: names of sequences."""
    if len(X) == 1 and names is not None:
        _warn_of_id_column(X[0], names)
    if len(X) < MIN_ID_SEQUENCES or not isinstance(X[0], np.ndarray) or X[0].shape[1] < 2 or min(map(len, X)) < 2:
        return
    first, last = (np.stack([x[t] for x in X]) for t in (0, -1))
    for j in np.flatnonzero((first == last).all(axis=0) & (first == np.round(first)).all(axis=0)).tolist():
        if len(np.unique(first[:, j])) == len(X) and all((x[:, j] == x[0, j]).all() for x in X):
            name = f"column {j}" if names is None else f"column {names[j]!r}"
            how = f"np.delete(x, {j}, axis=1)" if names is None else f"x.drop(columns={names[j]!r})"
            warn_user(
                f"the {name} of X has one whole number in each sequence, and another one in every other sequence. It "
                f"looks like the name of the sequence, not like a feature: pass [{how} for x in X].",
                InputWarning,
            )


def _warn_of_id_column(x: Array, names: Array) -> None:
    """Warn of a column of one table that holds a whole number for many rows, then another one: the table has several.

    Every number must occur in one run of rows only.
    """
    for j, name in enumerate(names):
        starts = np.flatnonzero(np.diff(x[:, j], prepend=np.nan) != 0)
        numbers = x[starts, j]
        if not MIN_ID_SEQUENCES <= len(starts) <= len(x) / MIN_ROWS_PER_ID or len(np.unique(numbers)) < len(starts):
            continue
        if (numbers == np.round(numbers)).all():
            warn_user(
                f"the column {name!r} of X holds {len(starts)} whole numbers, one after the other, for many rows each. "
                f"If it counts recordings, X is read as one series now, and {name!r} as a feature: pass "
                f"X.set_index([{name!r}, TIME]) instead, where TIME is the column of the time.",
                InputWarning,
            )


def warn_of_labels(labels: Array, *, weighted: bool = False) -> None:
    """Warn if nearly all labels are of one class, and classes are not weighted, or if many classes have few labels."""
    classes, counts = np.unique(labels, return_counts=True)
    share, each = counts.max() / len(labels), len(labels) / len(classes)
    if len(classes) >= MIN_MANY_CLASSES and each < MIN_LABELS_PER_CLASS:
        warn_user(
            f"y has {len(classes)} classes and {len(labels)} labels, {each:.2g} for each: too few to tell the classes "
            "apart. Give more sequences, or join classes.",
            InputWarning,
        )
    if share > MAX_CLASS_SHARE and not weighted:
        warn_user(
            f"{share:.3%} of y is {classes.tolist()[counts.argmax()]!r}: answering it always is right that often, and "
            "other labels will hardly be predicted. Set class_weight='balanced', leave out some of its sequences, or "
            "decide by predict_proba.",
            InputWarning,
        )


def warn_of_whole_labels(entries: Sequence[Target], given: Sequences) -> None:
    """Warn of labels given per step that are constant in every sequence: one per sequence may be meant."""
    labels = [np.ravel(entry) for entry in entries]
    if len(labels) < MIN_WHOLE_SEQUENCES or min(map(len, labels)) < 2 or not all((y == y[0]).all() for y in labels):
        return
    if len({y[0] for y in labels}) < 2:
        return
    warn_user(
        f"y has one label per step, but the same one at all steps of each of the {len(labels)} sequences. If each "
        f"sequence has one label, fit a SeriesClassifier with {_first_labels(given.form, given.kind)} as y: it answers "
        "once for a whole sequence.",
        InputWarning,
    )


def _first_labels(form: Form | None, kind: str) -> str:
    """Return the line that makes one label per sequence of labels per step in this form."""
    if isinstance(form, TableForm) and form.ids is not None:
        levels = 0 if form.ids.nlevels == 1 else list(range(form.ids.nlevels))
        if form.index is not None and form.index.nlevels > 1:
            return f"y.groupby(level={levels}).first() (y: a Series with the index of X)"
        return f"y.groupby(X[{form.ids.name!r}]).first()"
    if isinstance(form, DictForm):
        return "{name: t[0] for name, t in y.items()}"
    if kind == "joined":
        return "y[numpy.cumsum(lengths) - lengths]"
    return "[t[0] for t in y]"


@contextmanager
def explained_swap(X: object, y: object, n_features: int) -> Iterator[None]:
    """Explain the refusal of X where X and y were swapped; n_features: those of the fit."""
    try:
        yield
    except (TypeError, ValueError) as problem:
        if _width(y) != n_features or _width(X) == n_features:
            raise
        if n_features == 1:  # which one is X cannot be known
            kind = TypeError if isinstance(problem, TypeError) else ValueError
            raise kind(f"{problem} If X and y are swapped, call score(X, y).") from problem
        raise ValueError(
            f"X and y are swapped: y has the {n_features} features of the fit, and X has not. Call score(X, y)."
        ) from problem


@contextmanager
def explained_swap_of_fit(X: object, y: object) -> Iterator[None]:
    """Explain the refusal of the data of a fit where X and y were swapped."""
    try:
        yield
    except (TypeError, ValueError) as problem:
        features = _width(y)
        if features is None or features < 2 or _width(X) is not None:
            raise
        if _are_labels(X):
            raise ValueError(
                f"X and y are swapped: X holds labels, and y has {features} features. Call fit(X, y)."
            ) from problem
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(f"{problem} If X and y are swapped, call fit(X, y).") from problem


def _are_labels(given: object) -> bool:
    """Return whether an array, or the first entry of a list, holds text, whole numbers or truth values, but no path."""
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else given
    if isinstance(first, str) and ("/" in first or "." in first):
        return False
    try:
        return np.asarray(first).dtype.kind in "USOiub"
    except ValueError:
        return False


def _width(given: object) -> int | None:
    """Return the number of columns of an array or table, or of the first one in a list; None: it has none."""
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else given
    shape: tuple[int, ...] = getattr(first, "shape", ())
    return int(shape[-1]) if len(shape) > 1 else None
