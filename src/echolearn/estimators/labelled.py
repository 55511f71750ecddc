"""Sequences with their targets and a network's outputs, as the diagnosis of a fit looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.estimators.codecs import TargetCodec
from echolearn.estimators.outcome import Outcome
from echolearn.estimators.starting import Prediction
from echolearn.estimators.target_rules import OpenedTargets
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences
from echolearn.validation import Array


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
