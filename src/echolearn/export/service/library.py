"""Models that need the whole library: those which `echolearn.runtime` does not run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn.pipeline import Pipeline

from echolearn.estimators._forecaster import ESNForecaster
from echolearn.estimators.loading import SingleEstimator, StackEstimator, load
from echolearn.estimators.pipelines import PipelineStream, stream
from echolearn.estimators.streams import EstimatorStream
from echolearn.export.service.models import About, FrameStream, NetworkModel, as_rows
from echolearn.fitting.codecs import LabelSetCodec
from echolearn.validation import Array

Saved: TypeAlias = SingleEstimator | StackEstimator | Pipeline


def open_library_model(path: Path) -> NetworkModel:
    """Return a saved model as the whole library runs it."""
    return served(load(path))


def served(model: Saved) -> NetworkModel:
    """Return an estimator or a pipeline as the service asks it."""
    network = model.steps[-1][1] if isinstance(model, Pipeline) else model
    about = _about(model, network)
    if isinstance(network, ESNForecaster):
        why = "a forecaster continues whole series; POST /predict."
        return NetworkModel(about, forecast=partial(_forecast, network), why_no_stream=why)
    respond = partial(_respond, model, about)
    try:
        stream(model)
    except (ValueError, TypeError) as problem:
        return NetworkModel(about, respond, why_no_stream=str(problem))
    return NetworkModel(about, respond, open_stream=partial(_open_stream, model, bool(about.classes)))


def _about(model: Saved, network: SingleEstimator | StackEstimator) -> About:
    layers = getattr(network, "layers_", [network])
    classes = tuple(getattr(network, "classes_", np.empty(0)).tolist())
    forecasts = isinstance(network, ESNForecaster)
    sets = isinstance(layers[-1].codec_, LabelSetCodec)
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    values = len(network.target_mean_) if isinstance(network, ESNForecaster) else None
    return About(
        estimator=type(network).__name__,
        task="forecast" if forecasts else "labels" if sets else "classes" if classes else "values",
        n_features=values or model.n_features_in_,
        feature_names=names[:values],
        classes=classes,
        per_step=forecasts or bool(network.per_step_),
        units=sum(layer.reservoir_.N for layer in layers),
    )


def _respond(model: Saved, about: About, sequences: Sequence[Array], many: bool) -> list[Array]:
    assert not isinstance(model, ESNForecaster)
    ask = model.predict_proba if about.classes else model.predict
    return as_rows(ask(list(sequences) if many else sequences[0]), len(sequences), many, about.per_step)


def _forecast(network: ESNForecaster, series: Sequence[Array] | None, many: bool, steps: int) -> list[Array]:
    found = network.predict(steps, warm_up=None if series is None else list(series) if many else series[0])
    return [np.reshape(row, (steps, -1)) for row in (found if isinstance(found, list) else [found])]


def _open_stream(model: Saved, probabilities: bool) -> FrameStream:
    return _Running(stream(model), probabilities)


class _Running:
    """A stream of the library."""

    def __init__(self, running: EstimatorStream | PipelineStream, probabilities: bool) -> None:
        self._running = running
        self._ask = running.predict_proba if probabilities else running.predict  # type: ignore[union-attr]

    def step(self, frames: Array) -> Array:
        """Return the answers to the next frames."""
        rows: Array = self._ask(frames)
        return rows[:, None] if rows.ndim == 1 else rows

    def reset(self) -> None:
        """Return to the start of a sequence."""
        self._running.reset()
