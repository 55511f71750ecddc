"""Models that need the whole library: those which `echolearn.runtime` does not run."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np
from sklearn.pipeline import Pipeline

from echolearn.estimators import ESNForecaster, stream
from echolearn.estimators._functions import AnyEstimator
from echolearn.export.service.models import About, NetworkModel, served_forecaster, served_network
from echolearn.fitting.codecs import LabelSetCodec
from echolearn.validation import Array

Saved: TypeAlias = AnyEstimator | Pipeline


def served(model: Saved) -> NetworkModel:
    """Return an estimator or a pipeline as the service asks it."""
    network = model.steps[-1][1] if isinstance(model, Pipeline) else model
    about = _about(model, network)
    if isinstance(network, ESNForecaster):
        return served_forecaster(
            about, lambda steps, series, inputs: network.predict(steps, warm_up=series, exogenous=inputs)
        )
    assert not isinstance(model, ESNForecaster)
    predict = model.predict_proba if about.classes else model.predict
    return served_network(about, predict, partial(_LibraryStream, model, bool(about.classes)))


def _about(model: Saved, network: AnyEstimator) -> About:
    kind = type(network).__name__
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    if isinstance(network, ESNForecaster):
        values = len(network.target_mean_)
        inputs = network.n_features_in_ - values
        return About(kind, "forecast", values, names[:values], units=network.model_.network.N, n_inputs=inputs)
    classes = tuple(getattr(network, "classes_", np.empty(0)).tolist())
    sets = isinstance(network.codec_, LabelSetCodec)
    return About(
        estimator=kind,
        task="labels" if sets else "classes" if classes else "values",
        n_features=model.n_features_in_,
        feature_names=names,
        classes=classes,
        per_step=bool(network.per_step_),
        units=network.network_.N,
    )


class _LibraryStream:
    def __init__(self, model: Saved, probabilities: bool) -> None:
        self._stream = stream(model)
        self._ask = self._stream.predict_proba if probabilities else self._stream.predict  # type: ignore[union-attr]

    def step(self, frames: Array) -> Array:
        rows: Array = self._ask(frames)
        return rows[:, None] if rows.ndim == 1 else rows

    def reset(self) -> None:
        self._stream.reset()
