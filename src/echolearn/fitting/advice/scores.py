"""Warnings of `score`: results that are no better than trivial ones.

The rule is milder than after a fit (`examination`), because the user sees the number, and small folds score badly by
chance: with at least as many targets as a fit needs, `score` warns only if it is not above the trivial result.
"""

from __future__ import annotations

import numpy as np

from echolearn.exceptions import PoorScoreWarning
from echolearn.fitting.advice.after import DIAGNOSE, MIN_JUDGED_TARGETS
from echolearn.fitting.advice.baselines import effective_count
from echolearn.validation import Array, warn_user


def warn_of_poor_labels(true: Array, right: Array, w: Array | None) -> None:
    """Warn if labels that were scored are answered no better than by the most frequent one.

    true: labels (n,) or rows of labels; right: whether each was answered correctly; w: their weights, None: 1.
    """
    weights = np.ones(len(right)) if w is None else w
    if effective_count(weights) < MIN_JUDGED_TARGETS:
        return
    columns = true.reshape(len(true), -1).T
    usual = [_most_frequent(column, weights) for column in columns]
    same = np.all([column == entry for column, entry in zip(columns, usual, strict=True)], axis=0)
    accuracy, trivial = (float(np.average(correct, weights=weights)) for correct in (right, same))
    if accuracy <= trivial < 1:
        answer = repr(usual[0]) if true.ndim == 1 else "each label's most frequent value"
        _warn(f"{accuracy:.1%} of these labels are right: no better than always answering {answer} ({trivial:.1%}).")


def _most_frequent(column: Array, w: Array) -> object:
    labels, which = np.unique(column, return_inverse=True)
    return labels.tolist()[int(np.argmax(np.bincount(which, w)))]


def warn_of_poor_values(r2: float, w: Array) -> None:
    """Warn if values that were scored are answered no better than by their mean. w: the weights of all targets."""
    if effective_count(w) >= MIN_JUDGED_TARGETS and r2 <= 0:
        _warn(
            f"the squared error is {1 - r2:.3g} of the variance of these values: no better than always answering "
            f"their mean (R² {r2:.2g})."
        )


def _warn(finding: str) -> None:
    warn_user(
        f"{finding} Check whether X belongs to y step by step, and whether both come from where the training data came "
        f"from, with the same columns in the same units. {DIAGNOSE}",
        PoorScoreWarning,
    )


def check_comparable(true: Array, classes: Array) -> None:
    """Refuse labels of another kind than the classes, none of which can be right."""
    texts = [values.dtype.kind in "US" for values in (true, classes)]
    mixed = texts[0] != texts[1] and "O" not in (true.dtype.kind, classes.dtype.kind)
    if mixed or (true.dtype.kind == "f" and classes.dtype.kind in "iub" and not (true == np.round(true)).any()):
        raise ValueError(
            f"y holds {true.tolist()[0]!r:.40} and others like it; expected labels such as those of the fit, "
            f"{classes.tolist()[0]!r:.40}. Encode y as for fit, and look whether X and y are swapped: score(X, y)."
        )
