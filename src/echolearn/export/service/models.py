"""A served model: a description, and functions that answer. A model never changes; every stream has its own state.

The models here are those that `echolearn.runtime` runs: NumPy alone, no compiled code.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from echolearn.runtime import Model, load
from echolearn.runtime._plan import Plan
from echolearn.validation import Answers, Array, SequencesLike

Json = dict[str, object]


@dataclass(frozen=True)
class About:
    """The description that `GET /model` returns. task: "classes", "labels" of which several may hold, "values",
    "forecast" or "speech"; per_step: one answer per frame, otherwise one per sequence."""

    estimator: str
    task: str
    n_features: int
    feature_names: tuple[str, ...] = ()
    classes: tuple[object, ...] = ()
    per_step: bool = True
    units: int = 0
    n_inputs: int = 0  # exogenous inputs of a forecaster


class FrameStream(Protocol):
    """A network that runs: frames in, rows of probabilities or values out."""

    def step(self, frames: Array) -> Array:
        """Return the answers (k, n_out) to the next frames (k, n_features)."""

    def reset(self) -> None:
        """Return to the start of a sequence."""


@dataclass(frozen=True, eq=False)
class Query:
    """A parsed request: sequences (steps, n_features), whether they are a list, and steps to forecast. sequences: None
    for a forecast that continues the training series; exogenous: inputs of the known steps and those to come."""

    sequences: list[Array] | None
    many: bool
    steps: int = 0
    exogenous: list[Array] | None = None


@dataclass(frozen=True)
class NetworkModel:
    """respond: rows (steps, n_out) or (1, n_out) of probabilities or values of each sequence, of a forecaster
    the values of the next steps. open_stream: a new stream; None if there is none, and `why_no_stream` says why."""

    about: About
    respond: Callable[[Query], list[Array]]
    open_stream: Callable[[], FrameStream] | None = None
    why_no_stream: str = ""


Listener = Callable[[Array | None], Json]  # what is known after further samples (16-bit integers), or after the last


@dataclass(frozen=True)
class SpeechModel:
    """A recogniser. recognize: the bytes of an audio file, and the longest duration in seconds -> text and tokens."""

    about: About
    recognize: Callable[[bytes, float], Json]
    open_stream: Callable[[int], Listener] | None = None
    why_no_stream: str = ""


ServedModel = NetworkModel | SpeechModel


def served_network(
    about: About, predict: Callable[[SequencesLike], Answers], open_stream: Callable[[], FrameStream]
) -> NetworkModel:
    """Return a network as the service asks it, with streams if it has any."""

    def respond(query: Query) -> list[Array]:
        sequences = query.sequences or []
        answers = predict(sequences if query.many else sequences[0])
        if not about.per_step:
            return list(np.reshape(answers, (len(sequences), 1, -1)))
        return [np.reshape(one, (len(one), -1)) for one in (answers if query.many else [answers])]

    try:
        open_stream()
    except (ValueError, TypeError) as problem:
        return NetworkModel(about, respond, why_no_stream=str(problem))
    return NetworkModel(about, respond, open_stream)


def served_forecaster(about: About, forecast: Callable[[int, SequencesLike, SequencesLike], Answers]) -> NetworkModel:
    """Return a forecaster as the service asks it; it forecasts after series, or after the training series."""

    def respond(query: Query) -> list[Array]:
        given, inputs = (rows if rows is None or query.many else rows[0] for rows in (query.sequences, query.exogenous))
        values = forecast(query.steps, given, inputs)
        return [np.reshape(row, (query.steps, -1)) for row in (values if isinstance(values, list) else [values])]

    return NetworkModel(about, respond, why_no_stream="a forecaster continues whole series; POST /predict.")


def open_light_model(path: Path) -> NetworkModel:
    """Return a saved model as the runtime runs it; ExportError if it needs the whole library."""
    model = load(path)
    about = _about(model.plan)
    if about.task == "forecast":
        return served_forecaster(about, lambda steps, series, inputs: model.forecast(steps, series, exogenous=inputs))
    return served_network(about, model.predict_proba if about.classes else model.predict, partial(_LightStream, model))


def _about(plan: Plan) -> About:
    answer = plan.answer
    named = {"softmax": "classes", "nearest": "classes", "independent": "labels"}
    return About(
        estimator=plan.estimator,
        task="forecast" if plan.series_dims is not None else named.get(answer.kind, "values"),
        n_features=plan.n_features if plan.series_dims is None else plan.series_dims,
        feature_names=plan.feature_names[: plan.series_dims],  # of a forecaster, those of the series
        classes=() if answer.labels is None else tuple(answer.labels.tolist()),
        per_step=plan.per_step,
        units=plan.units,
        n_inputs=0 if plan.series_dims is None else plan.n_features - plan.series_dims,
    )


class _LightStream:
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
        self._stream.reset()
