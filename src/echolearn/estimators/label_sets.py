"""Probabilities of several labels at once, from the outputs of a ridge readout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from echolearn.estimators._base import FittedEstimator
from echolearn.estimators.codecs import LabelSetCodec
from echolearn.estimators.fit_data import OpenedData, encoded_inputs
from echolearn.execution.blas import one_blas_thread


def calibrate(codec: LabelSetCodec, fitted: FittedEstimator, opened: OpenedData, dtype: str) -> FittedEstimator:
    """Return the fit with a codec whose probabilities fit the labels of the training data, in one pass over them."""
    network, targets = fitted.network.network, opened.targets
    data = encoded_inputs(opened.given, fitted.inputs, per_step=targets.per_step, dtype=dtype)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        outputs = network.outputs(data)
    first = network.view.washout if targets.per_step else 0
    weights = targets.weights or [np.ones(np.shape(e)[:-1]) for e in targets.entries]
    Y = np.concatenate([o[first:] for o in outputs])
    T = np.concatenate([np.atleast_2d(e)[first:] for e in targets.encoded(codec)])
    w = np.concatenate([np.atleast_1d(v)[first:] for v in weights])
    return replace(fitted, codec=codec.calibrated(Y[w > 0], T[w > 0], w[w > 0]))
