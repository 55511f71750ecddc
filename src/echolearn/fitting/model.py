"""All that the file of a fitted model holds, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from echolearn.display.facts import brief
from echolearn.fitting.codecs import TargetCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.settings import Parameters
from echolearn.modelfile.layout import Facts
from echolearn.readout.network import Network
from echolearn.training.history import History
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class TrainingEnd:
    """Where one training series ended, so that what follows it can be predicted from there.

    state (N,); fed_back (n_out,): the last target, of a network with feedback; known (n_features,): the last known
    value of each feature; opening (some steps, n_features): the first frames, by which the series is recognised.
    """

    state: Array
    fed_back: Array | None
    known: Array
    opening: Array

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, kw_only=True)
class FittedModel:
    """All that the file of one network holds. estimator: the name of its class; settings: its parameters.

    layout: which axis of X was taken as time. recipe: how raw data become X, as plain values that no estimator
    interprets; None: it is not known.
    """

    estimator: str
    settings: Parameters
    network: Network
    codec: TargetCodec
    history: History
    feature_names: list[str]
    inputs: InputCodec
    target_names: list[str] = field(default_factory=list)
    training_end: TrainingEnd | None = None
    layout: str = "time_first"
    recipe: Facts | None = None


@dataclass(frozen=True, kw_only=True)
class FittedStack:
    """All that the file of a stack holds. scales: of the outputs that each layer but the top passes on.

    layout: which axis of X was taken as time.
    """

    estimator: str
    settings: Parameters
    layers: Sequence[FittedModel]
    scales: Sequence[Array]
    history: History
    layout: str = "time_first"
