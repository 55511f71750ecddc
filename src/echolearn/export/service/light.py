"""Models that `echolearn.runtime` runs: NumPy alone, no compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np

from echolearn.exceptions import ExportError
from echolearn.export.service.models import About, FrameStream, NetworkModel, as_rows
from echolearn.runtime import Model, load
from echolearn.runtime._plan import Plan
from echolearn.validation import Array


def open_light_model(path: Path) -> NetworkModel:
    """Return a saved model; ExportError if it needs the whole library."""
    return light(load(path))


def light(model: Model) -> NetworkModel:
    """Return a model of the runtime as the service asks it."""
    about = _about(model.plan)
    if about.task == "forecast":
        why = "a forecaster continues whole series; POST /predict."
        return NetworkModel(about, forecast=partial(_forecast, model), why_no_stream=why)
    respond = partial(_respond, model, about)
    try:
        model.stream()
    except (ExportError, ValueError, TypeError) as problem:
        return NetworkModel(about, respond, why_no_stream=str(problem))
    return NetworkModel(about, respond, open_stream=partial(_open_stream, model))


def _about(plan: Plan) -> About:
    answer = plan.answer
    named = {"softmax": "classes", "nearest": "classes", "independent": "labels"}
    return About(
        estimator=plan.estimator,
        task="forecast" if plan.horizon is not None else named.get(answer.kind, "values"),
        n_features=plan.n_features if plan.horizon is None else plan.horizon,
        feature_names=plan.feature_names[: plan.horizon],  # of a forecaster, those of the series
        classes=() if answer.labels is None else tuple(answer.labels.tolist()),
        per_step=plan.pooling is None,
        units=plan.units,
    )


def _respond(model: Model, about: About, sequences: Sequence[Array], many: bool) -> list[Array]:
    ask = model.predict_proba if about.classes else model.predict
    return as_rows(ask(list(sequences) if many else sequences[0]), len(sequences), many, about.per_step)


def _forecast(model: Model, series: Sequence[Array] | None, many: bool, steps: int) -> list[Array]:
    found = model.forecast(steps, series if series is None or many else series[0])
    return [np.reshape(row, (steps, -1)) for row in (found if isinstance(found, list) else [found])]


def _open_stream(model: Model) -> FrameStream:
    return _Running(model)


class _Running:
    """A stream of the runtime, which takes one frame at a time."""

    def __init__(self, model: Model) -> None:
        self._stream = model.stream()

    def step(self, frames: Array) -> Array:
        """Return the answers to the next frames; if one is refused, none was taken."""
        if len(frames) == 1:
            return self._stream.step(frames[0])[None]
        running = copy(self._stream)  # its arrays are replaced by a step, never changed
        rows = np.array([running.step(frame) for frame in frames])
        self._stream = running
        return rows

    def reset(self) -> None:
        """Return to the start of a sequence."""
        self._stream.reset()
