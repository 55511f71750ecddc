"""What a fit has found, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from echolearn.display.facts import brief
from echolearn.fitting.codecs import TargetCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.settings import Parameters
from echolearn.modelfile.layout import Facts
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
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


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedModel:
    """What a fit has found, and all that its file holds: the attribute `model_` of an estimator.

    estimator: the name of its class; settings: its parameters. refinement: the last epochs on the cross entropy.
    initial_reservoir: the weights before learning; None where they are not known, or the same. layout: which axis of X
    was taken as time. recipe: how raw data become X, as plain values that no estimator interprets; None: it is not
    known.
    """

    estimator: str
    settings: Parameters
    network: Network
    codec: TargetCodec
    inputs: InputCodec
    history: History = field(default_factory=History)
    refinement: History = field(default_factory=History)
    training_end: TrainingEnd | None = None
    initial_reservoir: Reservoir | None = None
    feature_names: Sequence[str] = ()
    target_names: Sequence[str] = ()
    layout: str = "time_first"
    recipe: Facts | None = None

    @property
    def dtype(self) -> str:
        """The precision of states and outputs."""
        return str(self.settings["dtype"])

    @property
    def per_step(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.network.view.pooling is None

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedStack:
    """All that the file of a stack holds. scales: of the outputs that each layer but the top passes on."""

    estimator: str
    settings: Parameters
    layers: Sequence[FittedModel]
    scales: Sequence[Array]
    history: History
    layout: str = "time_first"
