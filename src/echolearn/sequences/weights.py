"""The weights of targets that a user gives as `sample_weight`, checked and in the form of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from echolearn.sequences.unpacking import as_array
from echolearn.sequences.validation import InputSequences
from echolearn.validation.array_types import Array

EXPECTED = "one number per sequence, or one per step in the form of y, each >= 0"


def open_weights(given_weights: object, given: InputSequences, *, per_step: bool) -> list[Array] | None:
    """Check `sample_weight`; return (steps,) per sequence, or one number each with one target per sequence.

    With one target per step, a single number for a sequence is the weight of each of its steps.
    """
    if given_weights is None:
        return None
    given_weights = as_array(given_weights if given.form is None else given.form.targets(given_weights))
    if given.kind in ("one", "joined"):
        entries = _of_one_array(_numbers(given_weights), given, per_step)
    else:
        entries = _of_several(given_weights, given)
    for i, (w, x) in enumerate(zip(entries, given.X, strict=True)):
        if w.ndim and (not per_step or w.shape != (len(x),)):
            kind = f"one number, or {len(x)} (one per step)" if per_step else "one number, as y has one entry"
            raise ValueError(f"sample_weight of sequence {i} has shape {w.shape}; expected {kind}.")
        if not (w >= 0).all() or not np.isfinite(w).all():
            raise ValueError(
                f"sample_weight holds {w[~((w >= 0) & np.isfinite(w))].flat[0]}; expected finite numbers >= 0. Use 0 "
                "for targets that do not count."
            )
    if not any(w.any() for w in entries):
        raise ValueError("sample_weight is zero everywhere: nothing would be left to learn from.")
    if not per_step:
        return entries
    return [np.full(len(x), float(w)) if w.ndim == 0 else w for w, x in zip(entries, given.X, strict=True)]


def _numbers(values: object) -> Array:
    """Return weights as an array of float64."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight is {values!r:.80}; expected {EXPECTED}.") from None


def _of_one_array(w: Array, given: InputSequences, per_step: bool) -> list[Array]:
    """Return the weights of the sequences of a 2-D array."""
    total = int(given.lengths.sum())
    if per_step and w.shape == (total,):
        return [np.asarray(part) for part in given.parts(w)]
    if given.kind == "joined" and w.shape == (len(given.X),):
        return list(map(np.asarray, w))
    sequences = f", or {len(given.X)}, one per sequence" if given.kind == "joined" else ""
    raise ValueError(
        f"sample_weight has shape {w.shape}; expected ({total},), one number for each step of X{sequences}."
    )


def _of_several(values: object, given: InputSequences) -> list[Array]:
    """Return the weights of a list of sequences: an array (steps,) or a single number each."""
    if not isinstance(values, (list, tuple)) and _numbers(values).ndim == 0:
        raise ValueError(f"sample_weight is {values!r:.80}; expected {EXPECTED}.")
    entries = [_numbers(w) for w in cast("Sequence[object]", values)]
    if len(entries) != len(given.X):
        raise ValueError(
            f"sample_weight has {len(entries)} entries, but X has {len(given.X)} sequences; expected {EXPECTED}."
        )
    return entries
