"""A served model: a description, and functions that answer. A model never changes; every stream has its own state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from echolearn.validation import Array

Json = dict[str, object]


@dataclass(frozen=True)
class About:
    """The description that `GET /model` returns.

    Attributes
    ----------
    estimator : str
        The name of the estimator's class.
    task : {"classes", "labels", "values", "forecast", "speech"}
        Whether answers are one class each, labels of which several may hold, values, a continuation, or text.
    n_features : int
        Numbers per frame.
    feature_names : tuple of str
        Their names; empty if they have none.
    classes : tuple
        The classes or labels; empty for values.
    per_step : bool
        Whether there is one answer per frame; otherwise one per sequence.
    units : int
        Hidden units.
    """

    estimator: str
    task: str
    n_features: int
    feature_names: tuple[str, ...] = ()
    classes: tuple[object, ...] = ()
    per_step: bool = True
    units: int = 0


class FrameStream(Protocol):
    """A network that runs: frames in, rows of probabilities or values out."""

    def step(self, frames: Array) -> Array:
        """Return the answers (k, n_out) to the next frames (k, n_features)."""

    def reset(self) -> None:
        """Return to the start of a sequence."""


class SoundStream(Protocol):
    """A recogniser that takes sound piece by piece."""

    def push(self, samples: Array) -> Json:
        """Return what is known after further samples (16-bit integers)."""

    def finish(self) -> Json:
        """Return the rest of what was said."""


@dataclass(frozen=True)
class NetworkModel:
    """A network that answers to sequences of frames.

    respond: (sequences (steps, n_features), whether they are a list) -> rows of probabilities or values of each,
    (steps, n_out) or (1, n_out). forecast: of a forecaster, (series or None for the training series, whether they are a
    list, steps) -> values (steps, n_out) of each.
    open_stream: a new stream; None if the model has none, and `why_no_stream` says why.
    """

    about: About
    respond: Callable[[Sequence[Array], bool], list[Array]] | None = None
    forecast: Callable[[Sequence[Array] | None, bool, int], list[Array]] | None = None
    open_stream: Callable[[], FrameStream] | None = None
    why_no_stream: str = ""


def as_rows(answers: Array | list[Array], number: int, many: bool, per_step: bool) -> list[Array]:
    """Return what `predict` answers to so many sequences as rows of each: (steps, n_out), or (1, n_out)."""
    if not per_step:
        return list(np.reshape(answers, (number, 1, -1)))
    return [np.reshape(one, (len(one), -1)) for one in (answers if many else [answers])]


@dataclass(frozen=True)
class SpeechModel:
    """A recogniser. recognize: the bytes of an audio file, and the longest duration in seconds -> text and tokens."""

    about: About
    recognize: Callable[[bytes, float], Json]
    open_stream: Callable[[int], SoundStream] | None = None
    why_no_stream: str = ""


ServedModel = NetworkModel | SpeechModel
